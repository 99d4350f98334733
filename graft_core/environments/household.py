"""A small household text game with exact dynamics: fetch a thing, treat it, put it where it belongs.

Three rooms, each a step from the others; the agent carries one thing at a time. Fridge and microwave have
doors that fall shut when the agent leaves. Some mistakes cannot be undone: food can be eaten, a glass
cracks in the microwave, what goes into the chute is lost, a drawer closed with something in it stays
locked. The game is deterministic, and its observation tells every state of a task from every other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from graft_core.environments.base import EnvironmentInfo, Outcome, World
from graft_core.environments.household_more import MORE_TASKS
from graft_core.environments.household_tasks import ROOMS, SPOT_INDEX, SPOTS, TASKS, THINGS, Task
from graft_core.errors import UsageError
from graft_core.registry import nearest

CARRIED, LOST, RUINED = -1, -2, -3  # places that are no spot; RUINED - k is the k-th way to ruin the thing
MARKS = ("clean", "hot", "cool", "seen")
CLEAN, HOT, COOL, SEEN = 1, 2, 4, 8
TREATMENTS = {"clean": "sink", "heat": "microwave", "cool": "fridge"}
DRAWER = SPOT_INDEX["drawer"]


class HouseState(NamedTuple):
    """Where everything is. Integers only, so that hashes and orders are the same in every process."""

    room: int
    places: tuple[int, ...]
    marks: tuple[int, ...]
    open_doors: int
    locked: bool


def _phrase(name: str, marks: int, article: bool = True) -> str:
    words = [word for bit, word in enumerate(MARKS) if marks >> bit & 1] + [name]
    text = " ".join(words)
    if not article:
        return text
    if name == "bread":
        return text
    return f"{'an' if text[0] in 'aeiou' else 'a'} {text}"


def _marked(marks: int, verb: str) -> int:
    """Marks after a treatment: hot and cool exclude each other."""
    if verb in ("clean", "examine"):
        return marks | (CLEAN if verb == "clean" else SEEN)
    return (marks & ~(HOT | COOL)) | (HOT if verb == "heat" else COOL)


@dataclass(frozen=True)
class Household:
    """The game for one task; see `household_tasks.TASKS` for the names."""

    task: Task
    names: tuple[str, ...] = field(init=False)
    first: HouseState = field(init=False)

    def __post_init__(self) -> None:
        names = tuple(name for name, _ in self.task.things)
        places = tuple(SPOT_INDEX[spot] for _, spot in self.task.things)
        first = HouseState(ROOMS.index(self.task.room), places, (0,) * len(names), 0, False)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "first", first)

    @property
    def name(self) -> str:
        return f"household: {self.task.name}"

    def start(self) -> list[tuple[float, HouseState]]:
        return [(1.0, self.first)]

    def success(self, state: HouseState) -> bool:
        """Every wanted thing lies in its spot and carries the marks it needs."""
        for name, spot, marks in self.task.wanted:
            i = self.names.index(name)
            needed = sum(1 << MARKS.index(mark) for mark in marks)
            if state.marks[i] & needed != needed or not self._lies(state.places[i], spot):
                return False
        return True

    def _lies(self, place: int, spot: str) -> bool:
        """Whether a thing at `place` is where the task wants it."""
        if not spot:
            return True
        return place == (LOST if SPOTS[SPOT_INDEX[spot]].trap else SPOT_INDEX[spot])

    # What can be done

    def _reachable(self, state: HouseState, spot: int) -> bool:
        """Whether the agent can put things there and take them out."""
        place = SPOTS[spot]
        if place.room != ROOMS[state.room] or (place.lock and state.locked):
            return False
        return not place.door or bool(state.open_doors >> spot & 1)

    def actions(self, state: HouseState) -> tuple[str, ...]:
        if self.success(state):
            return ()
        here = ROOMS[state.room]
        found = [f"go to {room}" for room in ROOMS if room != here]
        for spot, place in enumerate(SPOTS):
            if place.door and place.room == here:
                found.append(f"{'close' if state.open_doors >> spot & 1 else 'open'} {place.name}")
        if here == SPOTS[DRAWER].room and not state.locked and DRAWER in state.places:
            found.append("close drawer")
        carried = state.places.index(CARRIED) if CARRIED in state.places else None
        if carried is None:
            found += [
                f"take {self.names[i]} from {SPOTS[spot].name}"
                for i, spot in enumerate(state.places)
                if spot >= 0 and self._reachable(state, spot)
            ]
        else:
            found += self._actions_with(state, self.names[carried])
        return (*found, "look")

    def _actions_with(self, state: HouseState, thing: str) -> list[str]:
        found = [
            f"put {thing} {place.preposition} {place.name}"
            for spot, place in enumerate(SPOTS)
            if self._reachable(state, spot)
        ]
        for verb in THINGS[thing].verbs:
            if verb == "eat":
                found.append(f"eat {thing}")
            elif self._reachable(state, SPOT_INDEX[TREATMENTS[verb]]):
                found.append(f"{verb} {thing} with {TREATMENTS[verb]}")
        if self.task.lamp and ROOMS[state.room] == SPOTS[SPOT_INDEX["desk"]].room:
            found.append(f"examine {thing} with lamp")
        return found

    # What it does

    def transitions(self, state: HouseState, action: str) -> list[Outcome]:
        """The one result of an admissible action; raises ValueError for any other."""
        if action not in self.actions(state):
            raise ValueError(f"{self.name}: {action!r} is not admissible in {self.key(state)!r}")
        after = self._after(state, action)
        done = self.success(after)
        return [Outcome(1.0, after, 1.0 if done else 0.0, done)]

    def _after(self, state: HouseState, action: str) -> HouseState:
        verb, _, rest = action.partition(" ")
        if verb == "go":
            return state._replace(room=ROOMS.index(rest.removeprefix("to ")), open_doors=0)
        if verb in ("open", "close"):
            if rest == "drawer":
                return state._replace(locked=True)
            return state._replace(open_doors=state.open_doors ^ (1 << SPOT_INDEX[rest]))
        if verb == "look":
            return state
        i = self.names.index(rest.split(" ")[0])
        if verb == "take":
            return self._moved(state, i, CARRIED)
        if verb == "put":
            spot = SPOT_INDEX[rest.split(" ")[-1]]
            return self._moved(state, i, LOST if SPOTS[spot].trap else spot)
        ways = [way for way, _ in THINGS[self.names[i]].ruins]
        if verb in ways:
            return self._moved(state, i, RUINED - ways.index(verb))
        marks = tuple(_marked(m, verb) if j == i else m for j, m in enumerate(state.marks))
        return state._replace(marks=marks)

    def _moved(self, state: HouseState, thing: int, place: int) -> HouseState:
        places = tuple(place if j == thing else p for j, p in enumerate(state.places))
        # A thing that is gone has no marks: states that differ in nothing that can matter are one state.
        marks = tuple(0 if j == thing and place <= LOST else m for j, m in enumerate(state.marks))
        return state._replace(places=places, marks=marks)

    # What is seen

    def observation(self, state: HouseState) -> str:
        here = ROOMS[state.room]
        parts = [f"You are in the {here}."]
        parts += [self._spot_text(state, spot) for spot, place in enumerate(SPOTS) if place.room == here]
        if self.task.lamp and here == SPOTS[SPOT_INDEX["desk"]].room:
            parts.append("There is a lamp on the desk.")
        parts.append(self._carry_text(state))
        parts += self._memory(state, here)
        if self.success(state):
            parts.append("The task is done.")
        return " ".join(parts)

    def _spot_text(self, state: HouseState, spot: int) -> str:
        place = SPOTS[spot]
        if place.trap:
            return f"There is a rubbish {place.name}."
        if place.lock and state.locked:
            return f"The {place.name} is locked."
        if place.door and not state.open_doors >> spot & 1:
            return f"The {place.name} is closed."
        seen = [_phrase(self.names[i], state.marks[i]) for i, p in enumerate(state.places) if p == spot]
        where = f"{place.preposition.capitalize()} the {'open ' if place.door else ''}{place.name} you see"
        return f"{where}: {', '.join(seen)}." if seen else f"{where} nothing."

    def _carry_text(self, state: HouseState) -> str:
        if CARRIED not in state.places:
            return "You carry nothing."
        i = state.places.index(CARRIED)
        return f"You carry {_phrase(self.names[i], state.marks[i])}."

    def _memory(self, state: HouseState, here: str) -> list[str]:
        """What the agent did to things it cannot see from here; without it two states would read alike."""
        lines: list[str] = []
        for i, (name, place) in enumerate(zip(self.names, state.places, strict=True)):
            if place == LOST:
                lines.append(f"The {name} is lost in the chute.")
            elif place <= RUINED:
                lines.append(THINGS[name].ruins[RUINED - place][1])
            elif place == DRAWER and state.locked:
                lines.append(f"The {_phrase(name, state.marks[i], article=False)} is locked in the drawer.")
            elif place != CARRIED and (place, state.marks[i]) != (self.first.places[i], 0):
                seen = SPOTS[place].room == here and self._reachable(state, place)
                if not seen:
                    spot = SPOTS[place]
                    thing = _phrase(name, state.marks[i], article=False)
                    lines.append(f"You left the {thing} {spot.preposition} the {spot.name}.")
        return lines

    def key(self, state: HouseState) -> str:
        """All of the state in one line, such as `kitchen; apple: carried, cool; fridge open`."""
        parts = [ROOMS[state.room]]
        for name, place, marks in zip(self.names, state.places, state.marks, strict=True):
            words = [word for bit, word in enumerate(MARKS) if marks >> bit & 1]
            parts.append(f"{name}: {', '.join([_where(name, place), *words])}")
        parts += [f"{place.name} open" for spot, place in enumerate(SPOTS) if state.open_doors >> spot & 1]
        return "; ".join([*parts, "drawer locked"] if state.locked else parts)


def _where(name: str, place: int) -> str:
    if place >= 0:
        return SPOTS[place].name
    return {CARRIED: "carried", LOST: "lost"}.get(
        place
    ) or f"ruined by {THINGS[name].ruins[RUINED - place][0]}"


def household(task: str = "cool apple") -> World[HouseState]:
    """The household game for a named task; raises UsageError for an unknown name."""
    known = {**TASKS, **MORE_TASKS}
    if task not in known:
        raise UsageError(f"household: unknown task {task!r}{nearest(task, known)}; known: {', '.join(known)}")
    return Household(known[task])


ENVIRONMENT = EnvironmentInfo(
    "household",
    "fetch a thing, clean, heat or cool it, put it where it belongs; some mistakes cannot be undone",
    household,
    {"task": "cool apple"},
)
