"""Making: an environment made before a run, with the place in the project's files of what keeps it from that."""

from mcptrials.environment import Environment, TrialPlaces
from mcptrials.errors import UsageError
from mcptrials.project import Project
from mcptrials.runner import preflight
from mcptrials.task import Task


def fingerprint(project: Project, task: Task, environment: Environment) -> str:
    """See `Environment.fingerprint`.

    Raises:
        UsageError: a fixture cannot be read.
    """
    try:
        return environment.fingerprint()
    except UsageError as exc:
        missing = next((each for each in environment.spec.files if repr(each) in exc.what), None)
        where = project.where_in(task, "environment", "files", missing) if missing else exc.where
        raise UsageError(exc.what, where=where, hint=exc.hint) from exc


async def pristine_hash(project: Project, task: Task, environment: Environment, places: TrialPlaces) -> str | None:
    """See `preflight.pristine_hash`.

    Raises:
        UsageError: it cannot be made, or not alike twice.
    """
    try:
        return await preflight.pristine_hash(environment, places)
    except UsageError as exc:
        where = project.where_in(task, "environment", "reset" if environment.spec.reset else "files")
        raise UsageError(exc.what, where=where, hint=exc.hint) from exc
