"""Workshop: builds the bench of a run from a project, and checks each part while building it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from typing import Any

from mcptrials import plugins
from mcptrials.dialect import EXACT
from mcptrials.environment import ChangesReader, Environment, Reader, Snapshot, TrialPlaces
from mcptrials.errors import UsageError
from mcptrials.executors.local import Slots
from mcptrials.models.patient import Pause
from mcptrials.presentation import ToolFilter
from mcptrials.project import HostConfig, ModelConfig, Project, ServerConfig, make_grader
from mcptrials.protocols import Host, KnowsTasks, Model, Server
from mcptrials.redaction import Redactor
from mcptrials.rollout import ArmBench, Bench, Promised, TaskBench
from mcptrials.rollout.bench import TrialWriter
from mcptrials.rollout.starts import Starts
from mcptrials.rollout.stop import Stop
from mcptrials.runner import making, preflight
from mcptrials.runner.apart import Apart
from mcptrials.runner.manifest import versions
from mcptrials.runner.opening import opener
from mcptrials.runner.options import Listener, Plan
from mcptrials.runner.preflight import ServerFacts, no_wire
from mcptrials.runner.rehearsal import NoModel, Rehearsal, Unwritten
from mcptrials.runner.serving import ServerMaker, own_stdout, sharing_warning, unseen_warning
from mcptrials.runner.soundness import found_broken, refuse_broken, unfit_answers
from mcptrials.runner.standins import RESTRAINED, can_be_tried, passing_idly
from mcptrials.runner.watchdog import watched
from mcptrials.servers.confinement import Confinement
from mcptrials.task import Suite, Task
from mcptrials.trial import Arm, StateValue, Trial


class Workshop:
    """The parts of one run, made once and closed together."""

    def __init__(self, project: Project, suite: Suite, listener: Listener, redactor: Redactor) -> None:
        self.project, self.suite, self._listener = project, suite, listener
        self.redactor = redactor
        """Learns the secrets that come up while the run goes on."""
        self.facts: dict[str, dict[str, ServerFacts]] = {}
        self._models: dict[str, Model] = {}
        self._pristine: dict[str, str | None] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._reference_states: dict[str, dict[str, StateValue]] = {}
        load = partial(plugins.load, "readers", project_dir=project.dir)
        self._environments = {
            task.id: Environment(project.environment(task), project.dir, load) for task in suite.tasks
        }
        self._fingerprints = {
            task.id: making.fingerprint(project, task, self._environments[task.id]) for task in suite.tasks
        }
        self.places = TrialPlaces.create(project.dir, keep=project.config.keep_trial_dirs)
        self._maker = ServerMaker(project, self.places, redactor, listener.warn)
        self._servers: dict[str, dict[str, Server]] = {}
        self._apart = Apart.of([each.spec for each in self._environments.values()])

    @classmethod
    @asynccontextmanager
    async def open(
        cls, project: Project, suite: Suite, listener: Listener, redactor: Redactor
    ) -> AsyncIterator["Workshop"]:
        workshop = cls(project, suite, listener, redactor)
        try:
            workshop._make_models()
            readers = [reader for task in suite.tasks for reader in workshop._readers(task)]
            with watched(workshop.places.root), closing(workshop._maker), own_stdout(project.config, readers):
                yield workshop
        finally:
            for model in workshop._models.values():
                await model.aclose()
            workshop.places.close()

    def _make_models(self) -> None:
        for config in self.project.config.models:
            self._models[_key(config)] = preflight.make_model(config, self.project.dir, self._listener.progressed)

    def environment(self, task: Task) -> Environment:
        return self._environments[task.id]

    def environment_hashes(self) -> dict[str, str]:
        """By task id."""
        return self._fingerprints

    async def check(self) -> None:
        """Every deterministic check, cheapest first.

        Raises:
            UsageError: the first that does not pass.
        """
        place = self.places.make(no_wire)
        try:
            await preflight.run_commands(self.project, place)
        finally:
            self.places.remove(place)
        for task in self.suite.tasks:
            await self.try_environment(task)
        if warning := self.sharing_warning():
            self._listener.warn(warning)
        for model in self._models.values():
            if isinstance(model, KnowsTasks):
                model.check_tasks(task.id for task in self.suite.tasks)
        for variant in self.project.config.variants:
            await self._check_variant(variant)
        await self._replay_references()

    async def try_environment(self, task: Task) -> None:
        """Finds out what a task's trials start from; tasks of one environment share it.

        Raises:
            UsageError: it cannot be made, or not alike twice.
        """
        fingerprint, environment = self._fingerprints[task.id], self._environments[task.id]
        if fingerprint not in self._pristine:
            self._pristine[fingerprint] = await making.pristine_hash(self.project, task, environment, self.places)
        if any(isinstance(reader, ChangesReader) for reader in self._readers(task)):
            await self.watch(task)

    def was_tried(self, task: Task) -> bool:
        """Whether it is known what a task's trials start from."""
        return self._fingerprints[task.id] in self._pristine

    async def watch(self, task: Task) -> None:
        """Has it known from now on what every trial of a task starts from, so that changes can be told.

        Raises:
            UsageError: there is too much, or it cannot be read.
        """
        fingerprint, environment = self._fingerprints[task.id], self._environments[task.id]
        if fingerprint not in self._snapshots:
            self._snapshots[fingerprint] = await preflight.pristine_snapshot(environment, self.places)
        environment.pristine = self._snapshots[fingerprint]

    async def refuse_broken(self) -> None:
        """The quick part of what `check` does, with what that found the last time.

        Raises:
            UsageError: a task is broken, and the project does not say to run it.
        """
        if self.project.config.broken_tasks == "run":
            return
        benches = [self.task_bench(task) for task in self.suite.tasks]
        idle = await self.passing_idly([bench for bench in benches if bench.task.expects not in RESTRAINED])
        refuse_broken(await unfit_answers(benches) | found_broken(self.project, benches) | idle)

    async def passing_idly(self, benches: Sequence[TaskBench]) -> dict[str, str]:
        """By task, what passes it though nothing is done."""
        tried = [bench for bench in benches if can_be_tried(bench.task)]
        return await passing_idly(tried, self.project.suite, self.places)

    async def _replay_references(self) -> None:
        """For graders that compare with the state which a reference leaves: of the first variant with servers."""
        tasks = [task for task in self.suite.tasks if self._asks_for_reference(task)]
        variant = next((name for name, facts in self.facts.items() if facts), None)
        if tasks and variant is None:
            raise UsageError(
                f"task {tasks[0].id!r} needs servers to replay its reference", hint="add a variant with servers"
            )
        if tasks and variant:
            rehearsal = self.rehearsal(variant)
            for number, task in enumerate(tasks):
                self._listener.notice(f"replaying the reference of {task.id} ({number + 1} of {len(tasks)})")
                self._reference_states[task.id] = await rehearsal.reference_state(task)

    def _asks_for_reference(self, task: Task) -> bool:
        graders = [make_grader(spec, self.project.dir) for spec in task.graders]
        return any(query.of == "reference" for grader in graders for query in grader.needs(task))

    def rehearsal(self, variant: str) -> Rehearsal:
        """Plays tasks on a variant's servers, which were tried before."""
        arm = ArmBench(
            arm=Arm(variant=variant, host="replay", model="none"),
            model=NoModel(),
            pause=Pause(),
            settings={},
            dialect=EXACT,
            host=self._host(HostConfig(host="mcptrials.hosts.replay:Replay")),
            **self._connected(variant),
        )
        tools = [(name, tool) for name, each in self.facts[variant].items() for tool in each.tools]
        return Rehearsal(self.bench({"run_id": "rehearsal", "split": "train"}, Unwritten()), arm, tools)

    async def ask_models(self) -> None:
        """One request to each language model: the first that may cost something.

        Raises:
            UsageError: a model does not answer.
        """
        for config in self.project.config.models:
            if not self._models[_key(config)].scripted:
                self._listener.notice(f"asking {config.model} for one tool call")
            limit = self.project.config.limits.output_tokens_per_request
            warning = await preflight.try_model(config, self._models[_key(config)], limit)
            if warning:
                self._listener.warn(warning)

    async def try_variant(self, variant: str) -> None:
        """Starts a variant's servers once.

        Raises:
            UsageError: one does not start, or lists tools that no client can use.
        """
        configs = self.project.config.servers_of(variant)
        self._apart.refuse_ahead(configs)
        self._listener.notice(f"starting {', '.join(configs) or 'no server'} ({variant})")
        environment = self._environments[self.suite.tasks[0].id]
        servers = self._servers[variant] = await self._maker.make(configs)
        connect_s, where = self.project.config.limits.connect_seconds, partial(self.project.where_server, variant)
        facts = await preflight.try_servers(servers, configs, environment, self.places, connect_s, where)
        self.facts[variant] = {name: self._maker.with_start(each, configs[name]) for name, each in facts.items()}

    async def _check_variant(self, variant: str) -> None:
        await self.try_variant(variant)
        configs, facts = self.project.config.servers_of(variant), self.facts[variant]
        for task in self.suite.tasks:
            preflight.refuse_unknown_tools(self.facts[variant], self._readers(task))
        overrides = self.project.overrides_of(variant)
        preflight.refuse_overrides(overrides, self.facts[variant], self.project.config.told_by(variant, "overrides"))
        for filters in self.filters(variant):
            preflight.refuse_empty_toolset(facts, configs, filters, overrides)
            for model in self.project.config.models:
                preflight.refuse_tools(model, self.facts[variant], filters)
        if warning := unseen_warning(variant, overrides, self.project.config.hosts):
            self._listener.warn(warning)
        rules = self._filters(self.suite.tasks[0], configs)
        for name, config in configs.items():
            if config.command is not None:
                confined = self.confinement(config)
                self._listener.notice(f"sandbox of {name}: {confined.title if confined else 'off'}")
            if fork := facts[name].fork:
                self._listener.notice(
                    f"processes of {name} are forked after {', '.join(fork['preloaded']) or 'no import'}"
                )
            shown = [tool for tool in facts[name].tools if rules[name].shows(tool)]
            if warning := sharing_warning(name, config, shown, self.slots().total):
                self._listener.warn(warning)

    def filters(self, variant: str) -> list[dict[str, ToolFilter]]:
        """Which tools a variant's tasks show; each selection once."""
        configs = self.project.config.servers_of(variant)
        found = [self._filters(task, configs) for task in self.suite.tasks]
        return list({repr(each): each for each in found}.values())

    def rules(self, task: Task, variant: str) -> dict[str, ToolFilter]:
        """Which tools of a variant's servers a task shows."""
        return self._filters(task, self.project.config.servers_of(variant))

    async def servers(self, variant: str) -> dict[str, Server]:
        """A variant's servers, not started."""
        return await self._maker.make(self.project.config.servers_of(variant))

    def confinement(self, config: ServerConfig) -> Confinement | None:
        """What is in force for a server that was made."""
        return self._maker.confinement(config)

    def _readers(self, task: Task) -> list[Reader]:
        """What the graders of a task will have read."""
        graders = [make_grader(spec, self.project.dir) for spec in task.graders]
        return [self._environments[task.id].reader_of(query) for grader in graders for query in grader.needs(task)]

    def _filters(self, task: Task, configs: Mapping[str, ServerConfig]) -> dict[str, ToolFilter]:
        return {
            name: ToolFilter(
                allow=config.tools.allow,
                hide=config.tools.hide,
                prefix=config.tools.prefix,
                inject=config.tools.inject,
                list_changed=config.list_changed,
                writes="denied" if self.project.writes(task, config) == "denied" else "allowed",
            )
            for name, config in configs.items()
        }

    def plan(self, run_id: str, trials: Sequence[Trial], owed: Sequence[Trial]) -> Plan:
        return Plan(
            run_id=run_id,
            suite=self.suite,
            arms=tuple(arm for arm, _, _ in self.project.arms().values()),
            trials=tuple(trials),
            owed=tuple(owed),
            limits=self.project.config.limits,
            concurrency=self.slots().total,
            scripted=any(model.scripted for model in self._models.values()),
            free=all(preflight.is_free(config) for config in self.project.config.models),
        )

    def slots(self) -> Slots:
        """One at a time where trials share declared state."""
        asked = self._asked_slots()
        return replace(asked, total=1) if self._apart.shared else asked

    def sharing_warning(self) -> str | None:
        """Why trials run one at a time though more were asked for."""
        return self._apart.warning(self._asked_slots().total)

    def _asked_slots(self) -> Slots:
        config = self.project.config
        limits = {
            _key(model): model.concurrency or (1 if model.model.startswith("local:") else config.concurrency)
            for model in config.models
        }
        model_of = {arm_id: _key(model) for arm_id, (_, model, _) in self.project.arms().items()}
        return Slots(min(config.concurrency, sum(limits.values())), model_of, limits)

    def bench(self, manifest: Mapping[str, Any], writer: TrialWriter) -> Bench:
        return Bench(
            run_id=manifest["run_id"],
            split=manifest["split"],
            suite_hash=self.suite.hash,
            tasks={task.id: self.task_bench(task) for task in self.suite.tasks if self.was_tried(task)},
            arms=self._arm_benches(),
            places=self.places,
            writer=writer,
            redactor=self.redactor,
            versions=versions(),
            stop=Stop(),
            starts=Starts(),
        )

    def task_bench(self, task: Task) -> TaskBench:
        """A task with what its trials need; its environment was tried before."""
        fingerprint, config = self._fingerprints[task.id], self.project.config
        graders = tuple((spec, make_grader(spec, self.project.dir)) for spec in task.graders)
        return TaskBench(
            task=task,
            environment=self._environments[task.id],
            environment_hash=fingerprint,
            pristine_hash=self._pristine[fingerprint],
            limits=self.project.limits(task),
            graders=graders,
            queries=tuple({query.key: query for _, each in graders for query in each.needs(task)}.values()),
            filters={variant: self._filters(task, config.servers_of(variant)) for variant in config.variants},
            reference_state=self._reference_states.get(task.id, {}),
        )

    def _arm_benches(self) -> dict[str, ArmBench]:
        pauses = {key: Pause() for key in self._models}
        return {
            arm_id: ArmBench(
                arm=arm,
                host=self._host(host),
                model=self._models[_key(model)],
                pause=pauses[_key(model)],
                settings=model.settings,
                dialect=model.dialect,
                ahead=self._ahead(arm.variant),
                overrides=self.project.overrides_of(arm.variant),
                **self._connected(arm.variant),
            )
            for arm_id, (arm, model, host) in self.project.arms().items()
            if _key(model) in self._models
        }

    def _ahead(self, variant: str) -> frozenset[str]:
        start_s = {name: each.start_s for name, each in self.facts[variant].items()}
        return self._apart.ahead(self.project.config.servers_of(variant), start_s, self.slots().total)

    def _connected(self, variant: str) -> dict[str, Any]:
        """What an arm has of its variant."""
        facts = self.facts[variant]
        return {
            "servers": self._servers[variant],
            "open_session": partial(opener, facts, self.project.config.servers_of(variant)),
            "continue_session": plugins.load("servers", "continuation"),
            "promised": {name: Promised(each.version, each.tools_hash) for name, each in facts.items()},
        }

    def _host(self, config: HostConfig) -> Host:
        host: Host = plugins.load("hosts", config.host, self.project.dir)(**config.settings)
        return host


def _key(config: ModelConfig) -> str:
    """Equal for arms that share one model object, and with it its slots."""
    return repr(config)
