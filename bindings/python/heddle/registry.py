"""The workflows that this program knows. The decorator adds each; a store serves the actions of all of them, so that
instances of an earlier run of the program go on whichever it asks for first."""
from __future__ import annotations

import sys
from typing import Any, Coroutine, Iterator, Mapping, ParamSpec, Protocol, Sequence, TypeVar

P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)


class Runs(Protocol[P, T_co]):
    """A workflow, for type checkers: what its ``run`` takes is what ``store.run`` takes, and what it returns is the result."""

    def run(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T_co]: ...


class Compiled(Protocol):
    """What the compiler gives for a workflow."""

    @property
    def cls(self) -> type: ...
    @property
    def name(self) -> str: ...
    def try_compile(self) -> bool: ...
    @property
    def ir(self) -> dict[str, Any]: ...
    @property
    def actions(self) -> Mapping[str, Any]: ...
    @property
    def children(self) -> Sequence[Compiled]: ...
    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs by name. TypeError for missing and unknown ones."""


_known: dict[str, Compiled] = {}


def add(compiled: Compiled) -> None:
    """A workflow of this program. Defined again under a name: the last one counts."""
    _known[compiled.name] = compiled


def has_any() -> bool:
    """Whether this program has a workflow. Compiles nothing."""
    return bool(_known)


def known() -> list[Compiled]:
    """Those that can be compiled now; one that cannot says why when it is used."""
    return [compiled for compiled in _known.values() if compiled.try_compile()]


def own_actions() -> Mapping[str, Any]:
    """What heddle itself does in recorded steps."""
    from .compiler.construct import standard_makers
    from .compiler.operations import all_actions
    from .recorded import LOG

    return {**all_actions(), **standard_makers(), LOG.name: LOG}


def kept_actions() -> Mapping[str, Any]:
    """What this program can do beyond what its workflows ask for: instances of earlier versions may come to it. The actions
    that its modules define, and what makes objects of the classes in the modules with workflows and actions."""
    from .actions import defined
    from .compiler.construct import maker

    actions = defined()
    modules = {compiled.cls.__module__ for compiled in _known.values()} | {action.__module__ for action in actions.values()}
    makers = (maker(cls) for module in sorted(modules) for cls in _made_classes(sys.modules.get(module), module))
    return {**{made.name: made for made in makers}, **actions}


def _made_classes(place: Any, module: str, inside: str = "") -> Iterator[type]:
    """The classes of a program in a module, and those inside of its own classes."""
    from .compiler.classes import class_kind

    for cls in [value for value in getattr(place, "__dict__", {}).values() if isinstance(value, type)]:
        if class_kind(cls) is not None and cls.__module__ != "builtins":
            yield cls
        if cls.__module__ == module and cls.__qualname__.rpartition(".")[0] == inside:
            yield from _made_classes(cls, module, cls.__qualname__)


def compiled_of(workflow: Any) -> Compiled:
    """Of a class of workflows: what its decorator has kept at ``__heddle__``. A compiled one is itself. A class that derives
    from a workflow is none before it is decorated, too: it may have another ``run``."""
    found = vars(workflow).get("__heddle__") if isinstance(workflow, type) else workflow
    if not hasattr(found, "bind"):
        raise TypeError(missing(workflow))
    compiled: Compiled = found
    return compiled


def missing(workflow: Any) -> str:
    """What is wrong with something that is no workflow."""
    name = getattr(workflow, "__name__", repr(workflow))
    if not isinstance(workflow, type) and hasattr(workflow, "__heddle__"):
        return f"give the class, not an object of it: store.run({type(workflow).__name__}, ...)"
    derives = isinstance(workflow, type) and hasattr(workflow, "explain")
    advice = "put @workflow above its class" if derives else "give a class that derives from heddle.Workflow, below @workflow"
    return f"{name} is no workflow: {advice}"
