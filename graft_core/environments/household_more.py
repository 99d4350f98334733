"""Ten more kinds of household task, beside the eight of the sample file: what they add is order, choice and waste.

Each has a distractor that fits the goal almost, or a mistake that cannot be undone.
"""

from __future__ import annotations

from graft_core.environments.household_tasks import Task

MORE_TASKS = {
    task.name: task
    for task in (
        Task(
            "look at letter", "look", "Look at the letter under the lamp.", "living room",
            (("letter", "shelf"), ("book", "table")), (("letter", "", ("seen",)),), lamp=True,
        ),
        Task(
            "read and shelve", "look and put", "Look at the book under the lamp, then put it on the shelf.", "kitchen",
            (("book", "counter"), ("letter", "desk")), (("book", "shelf", ("seen",)),), lamp=True,
        ),
        Task(
            "pick two for the table", "pick two", "Put the fork and the spoon on the table.", "kitchen",
            (("fork", "counter"), ("spoon", "desk")), (("fork", "table", ()), ("spoon", "table", ())),
        ),
        Task(
            "swap", "swap", "Put the mug on the shelf and the book on the table.", "living room",
            (("mug", "table"), ("book", "shelf")), (("mug", "shelf", ()), ("book", "table", ())),
        ),
        Task(
            "clean and heat plate", "clean and heat", "Put a clean, hot plate on the table.", "living room",
            (("plate", "shelf"), ("fork", "counter")), (("plate", "table", ("clean", "hot")),),
        ),
        Task(
            "clean and cool glass", "clean and cool", "Put a clean, cool glass on the shelf.", "kitchen",
            (("glass", "desk"), ("mug", "counter")), (("glass", "shelf", ("clean", "cool")),),
        ),
        Task(
            "throw away letter", "throw away", "Throw the letter into the chute, and keep the book.", "study",
            (("letter", "desk"), ("book", "desk")), (("letter", "chute", ()), ("book", "desk", ())),
        ),
        Task(
            "hide spoon", "put away", "Put the clean spoon into the drawer, and the mug on the desk.", "study",
            (("spoon", "shelf"), ("mug", "drawer")), (("spoon", "drawer", ("clean",)), ("mug", "desk", ())),
        ),
        Task(
            "hot and cool", "one hot one cool", "Put a hot mug and a cool apple on the table.", "living room",
            (("mug", "table"), ("apple", "counter")), (("mug", "table", ("hot",)), ("apple", "table", ("cool",))),
        ),
        Task(
            "breakfast", "serve", "Put hot bread on the table and a clean plate beside it.", "kitchen",
            (("bread", "counter"), ("plate", "sink")), (("bread", "table", ("hot",)), ("plate", "table", ("clean",))),
        ),
    )
}
