"""Page: runs and their comparison as one file to send."""

from mcptrials.page.contents import Contents, Shown, contents_of
from mcptrials.page.html import html_page
from mcptrials.page.markdown import markdown_page

__all__ = ["Contents", "Shown", "contents_of", "html_page", "markdown_page"]
