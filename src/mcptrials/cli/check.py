"""`mcptrials check`: everything that can be known before a run, without spending on it."""

import json
from typing import Any

import click

from mcptrials.audit import check_project
from mcptrials.cli.audit_page import print_audit
from mcptrials.cli.outcome import DONE, SAID_NO, Outcome, end, keep_secret
from mcptrials.cli.screen import common_options, messages, one_line, output
from mcptrials.project import Project
from mcptrials.project.published import published_schema
from mcptrials.redaction import Redactor


@click.command()
@click.option("--model", "models", multiple=True, metavar="M", help="Check for this model besides the project's.")
@click.option("--offline", is_flag=True, help="Ask no model: without it, paid ones get one tiny request each.")
@click.option("--only", metavar="EXPR", help="Rehearse these tasks only: 'issues-*,tag:write,!group:slow'.")
@click.option(
    "--schema",
    type=click.Choice(["project", "tasks", "overrides"]),
    help="Print the JSON Schema of these files, and end.",
)
@common_options
def check(**flags: Any) -> None:
    """Check a project: files, tasks, servers, tools by provider, models, and the size of a run."""
    if flags["schema"]:
        schema = published_schema(flags["schema"])
        if not flags["as_json"]:
            click.echo(json.dumps(schema, indent=2))
        end(Outcome(schema))
    project = Project.load(flags["project_file"], flags["settings"])
    keep_secret(dict(project.secrets))
    screen, silent = messages(), flags["quiet"] or flags["as_json"]
    audit = check_project(
        project,
        flags["models"],
        offline=flags["offline"],
        only=flags["only"],
        notice=lambda text: None if silent else screen.print(one_line(text), markup=False),
    )
    document = Redactor(project.secrets).value(audit.document())
    if not flags["as_json"]:
        print_audit(output(), document, quiet=flags["quiet"])
    warnings = [f"{line['subject']}: {line['what']}" for line in document["lines"] if line["level"] == "warn"]
    end(Outcome(document, DONE if audit.passed else SAID_NO, tuple(warnings)))
