"""Rooms, things and tasks of the household game."""

from __future__ import annotations

from dataclasses import dataclass

ROOMS = ("kitchen", "living room", "study")


@dataclass(frozen=True)
class Spot:
    """A place that holds things.

    `door`: shut at first and whenever the agent leaves the room. `lock`: closed with something in it, it
    stays locked. `trap`: what is put in is lost.
    """

    name: str
    room: str
    preposition: str = "on"
    door: bool = False
    lock: bool = False
    trap: bool = False


SPOTS = (
    Spot("counter", "kitchen"),
    Spot("sink", "kitchen", "in"),
    Spot("fridge", "kitchen", "in", door=True),
    Spot("microwave", "kitchen", "in", door=True),
    Spot("chute", "kitchen", "in", trap=True),
    Spot("table", "living room"),
    Spot("shelf", "living room"),
    Spot("desk", "study"),
    Spot("drawer", "study", "in", lock=True),
)
SPOT_INDEX = {spot.name: i for i, spot in enumerate(SPOTS)}


@dataclass(frozen=True)
class Thing:
    """Something to carry: `verbs` can be done with it, `ruins` destroy it (verb, what is then said)."""

    name: str
    verbs: tuple[str, ...] = ()
    ruins: tuple[tuple[str, str], ...] = ()


THINGS = {
    thing.name: thing
    for thing in (
        Thing("apple", ("clean", "heat", "cool", "eat"), (("eat", "You have eaten the apple."),)),
        Thing("bread", ("heat", "eat"), (("eat", "You have eaten the bread."),)),
        Thing("egg", ("clean", "cool", "heat"), (("heat", "The egg has burst."),)),
        Thing("mug", ("clean", "heat", "cool")),
        Thing("plate", ("clean", "heat")),
        Thing("glass", ("clean", "cool", "heat"), (("heat", "The glass has cracked."),)),
        Thing("fork", ("clean", "heat"), (("heat", "The fork has melted."),)),
        Thing("spoon", ("clean",)),
        Thing("book", ("clean",), (("clean", "The book is soaked and spoilt."),)),
        Thing(
            "letter", ("clean", "heat"),
            (("clean", "The letter is soaked and spoilt."), ("heat", "The letter has burnt.")),
        ),
    )
}


@dataclass(frozen=True)
class Task:
    """One goal: all of `wanted` (name, spot, marks) in place; start in `room`, with `things` (name, spot).

    A wanted spot "" is any place, the chute means thrown away. `lamp`: there is a lamp on the desk, under which a carried
    thing can be looked at (mark `seen`).
    """

    name: str
    family: str
    goal: str
    room: str
    things: tuple[tuple[str, str], ...]
    wanted: tuple[tuple[str, str, tuple[str, ...]], ...]
    lamp: bool = False


TASKS = {
    task.name: task
    for task in (
        Task(
            "cool apple", "cool", "Put a cool apple on the table.", "living room",
            (("apple", "counter"), ("book", "table")), (("apple", "table", ("cool",)),),
        ),
        Task(
            "heat mug", "heat", "Put a hot mug on the desk.", "study",
            (("mug", "shelf"), ("letter", "desk")), (("mug", "desk", ("hot",)),),
        ),
        Task(
            "clean plate", "clean", "Put a clean plate on the table.", "kitchen",
            (("plate", "desk"), ("spoon", "counter")), (("plate", "table", ("clean",)),),
        ),
        Task(
            "shelve book", "put", "Put the book on the shelf.", "living room",
            (("book", "desk"), ("mug", "table")), (("book", "shelf", ()),),
        ),
        Task(
            "cool glass", "cool", "Put a cool glass on the desk.", "study",
            (("glass", "sink"), ("spoon", "counter")), (("glass", "desk", ("cool",)),),
        ),
        Task(
            "heat bread", "heat", "Put hot bread on the table.", "living room",
            (("bread", "shelf"), ("book", "table")), (("bread", "table", ("hot",)),),
        ),
        Task(
            "clean fork", "clean", "Put a clean fork in the drawer.", "kitchen",
            (("fork", "table"), ("book", "counter")), (("fork", "drawer", ("clean",)),),
        ),
        Task(
            "two for the desk", "two", "Put a clean, cool egg and the spoon on the desk.", "study",
            (("egg", "fridge"), ("spoon", "shelf")),
            (("egg", "desk", ("clean", "cool")), ("spoon", "desk", ())),
        ),
    )
}
