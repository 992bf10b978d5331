"""What the tracker tells models about its tools, in two styles that are otherwise the same server."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Descriptions:
    """The texts of one style: of each tool, and of each parameter."""

    search_issues: str
    get_issue: str
    get_issue_history: str
    add_label: str
    project: str
    text: str
    key: str
    label: str


PLAIN = Descriptions(
    search_issues="Find issues and their keys. Returns key, type, status and title of the best matches.",
    get_issue="Get one issue by its key: title, type, status, priority, assignee, version, labels.",
    get_issue_history="Get when an issue was opened, closed and reopened, oldest first.",
    add_label="Add one label to one issue. Changes the tracker: use it only when the user asks for a label.",
    project="BILL, AUTH or WEB. Leave empty to search all, unless the user names one",
    text="Words of the title, or a type or status: bug, feature, open, blocked, closed",
    key="Issue key: project key, dash, number. Not known? Call search_issues first",
    label="Label in lower case, words joined by '-'",
)

TERSE = Descriptions(
    search_issues="Search.",
    get_issue="Get issue.",
    get_issue_history="Get history.",
    add_label="Add label.",
    project="Project",
    text="Text",
    key="Key",
    label="Label",
)

STYLES = {"plain": PLAIN, "terse": TERSE}
