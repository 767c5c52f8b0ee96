"""Workflows: classes whose ``run`` survives the process that runs it."""
from __future__ import annotations

import functools
import inspect
from datetime import timedelta
from typing import Any, ClassVar, Mapping, Optional, Sequence, TypeVar, Union

from . import registry
from .actions import Action, ActionCall, RetryPolicy
from .keeping import Keep
from .compiler import CompileError, Output, Unresolved, compile_workflow, refuse_unresolved
from .pictures import Explanation, WorkflowGraph

T = TypeVar("T")
W = TypeVar("W", bound="type[Workflow]")


class Compiled:
    """A workflow as a store gets it. The decorator compiles it; if the class names something that the module defines further
    down, it is compiled when it is first used."""

    def __init__(self, cls: type[Workflow], name: str) -> None:
        self.cls = cls
        self.name = name
        self._output: Optional[Output] = None
        self._inputs: Optional[inspect.Signature] = None

    def compile(self) -> None:
        try:
            self._output = compile_workflow(self.cls, self.name, Workflow)
        except CompileError as error:
            raise error.with_traceback(None)  # without the compiler's frames: the error has the place

    @property
    def output(self) -> Output:
        if self._output is None:
            try:
                self.compile()
            except Unresolved as unresolved:
                try:
                    refuse_unresolved(unresolved)
                except CompileError as error:
                    raise error.with_traceback(None) from None
        assert self._output is not None
        return self._output

    def try_compile(self) -> bool:
        """Compiles the workflow if it is not compiled yet. False: names are still missing, or it is refused."""
        if self._output is None:
            try:
                self.compile()
            except (CompileError, Unresolved):
                return False
        return True

    @property
    def ir(self) -> dict[str, Any]:
        return self.output.ir

    @property
    def actions(self) -> Mapping[str, Action[..., Any]]:
        return self.output.actions

    @property
    def children(self) -> Sequence[Compiled]:
        return [getattr(child, "__heddle__") for child in self.output.children.values()]

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs by name. TypeError for missing and unknown ones."""
        if self._inputs is None:
            signature = inspect.signature(self.cls.run)
            self._inputs = signature.replace(parameters=list(signature.parameters.values())[1:])
        try:
            return dict(self._inputs.bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None


class Workflow:
    """The base of all workflows. A subclass has ``async def run(self, ...)`` and stands below ``@workflow``.

    ``name`` is the workflow's name (default: the class's). With ``concurrent = True`` the iterations of a loop run at once
    if that changes nothing but the time; ``explain()`` says which loops do, and why the others do not. With
    ``journal = "steps"`` the store keeps what an instance has done and when, for ``handle.timeline()``; with "nodes" every
    node of its graph. ``keep = timedelta(days=30)`` or a :class:`heddle.Keep` says how long instances stay in the store
    when they are over; the default is the store's.
    """

    name: ClassVar[str]
    concurrent: ClassVar[bool] = False
    journal: ClassVar[str] = "none"
    keep: ClassVar[Union[Keep, timedelta, None]] = None
    __heddle__: ClassVar[Compiled]

    def __new__(cls, *args: Any, **kwargs: Any) -> Workflow:
        if "__heddle__" not in cls.__dict__:
            raise TypeError(registry.missing(cls))
        if args or kwargs:
            raise TypeError(f"{cls.__name__}() is given arguments, but the engine makes the object that runs: give them to run()")
        return super().__new__(cls)

    async def run(self, *args: Any, **kwargs: Any) -> Any:
        """What the workflow does; its parameters are the inputs."""
        raise NotImplementedError("a workflow has a method `async def run(self, ...)`")

    async def run_action(self, call: ActionCall[T], *, retry: Optional[RetryPolicy] = None,
                         timeout: Optional[float] = None) -> T:
        """Awaits an action with a policy of its own."""
        return await call

    @classmethod
    def ir(cls) -> dict[str, Any]:
        """The workflow as the engine gets it: docs/IR.md."""
        return registry.compiled_of(cls).ir

    @classmethod
    def explain(cls) -> Explanation:
        """The graph, which loops run in parallel, and why the others do not. Prints well."""
        registry.compiled_of(cls)
        return Explanation(cls.ir())

    @classmethod
    def graph(cls) -> WorkflowGraph:
        """A drawing in a notebook, Mermaid's text elsewhere; ``graph().save("flow.svg")`` writes a file."""
        return WorkflowGraph(cls.ir())


def _alone(run: Any) -> Any:
    """``await Checkout().run(order)`` outside of a store runs on one in memory."""
    @functools.wraps(run)
    async def run_in_memory(self: Workflow, *args: Any, **kwargs: Any) -> Any:
        import heddle

        cls: Any = type(self)
        async with heddle.open() as store:
            return await store.run(cls, *args, **kwargs)
    return run_in_memory


def workflow(cls: W) -> W:
    """Makes a class a workflow: compiles it, and says at once if something in it is refused."""
    if not (isinstance(cls, type) and issubclass(cls, Workflow)):
        raise TypeError("@workflow decorates a class that derives from heddle.Workflow")
    name = cls.__dict__.get("name")
    compiled = Compiled(cls, name if isinstance(name, str) else cls.__name__)
    cls.__heddle__ = compiled
    if "run" in cls.__dict__ and not hasattr(cls.__dict__["run"], "__wrapped__"):
        setattr(cls, "run", _alone(cls.__dict__["run"]))
    try:
        compiled.compile()
    except Unresolved:
        pass
    registry.add(compiled)
    return cls
