"""Warning codes of the readers: stable words that reports, the command line and the app share, and what each means."""

from __future__ import annotations

from typing import Final

WARNINGS: Final[dict[str, str]] = {
    "attachment_missing": "A text refers to an attachment that the file does not hold; the reference was kept as it is.",
    "file_damaged": "A file is damaged (an archive without its list of members, say); what could be read was read.",
    "file_not_read_to_end": "Nearly nothing of a file can be used, or it is compressed and unpacks to far more records than "
    "rollouts of its size; it was read up to there.",
    "group_from_name": "The file does not name its task; the task was taken from the name of the file, as the program that "
    "wrote it names its files.",
    "infrastructure_error": "A rollout was ended by an error of the machinery around it, not by the agent; its outcome is "
    "unknown, which is not failure.",
    "keys_repeated": "An object of the file has the same key twice; the last value was used, as JSON readers do.",
    "score_unreadable": "A score is neither a number nor one of the known words; the outcome is unknown.",
    "scores_several": "A rollout has several scores; the first is its outcome, all are in its metadata (--success-when can "
    "name another).",
    "aliases_used": "The file uses other names for the canonical fields; which name was read as which field is listed.",
    "duplicate_rollouts": "Two files hold the same rollout (same ids, same steps, same outcome); both are kept.",
    "file_skipped": "A file of the directory was left out because no reader knows it or it could not be used.",
    "fields_unusable": "An optional field held a value of the wrong kind; the value was left out, the row was kept.",
    "group_ids_reused": "Two files use the same group and rollout ids for different rollouts; their groups are kept "
    "apart by putting the file's name in front.",
    "group_missing": "The file names no task (group); one group per file is assumed until a grouping is chosen.",
    "next_observation_differs": "A row's next_observation is not the observation of the row that follows it.",
    "no_outcome": "A rollout has neither an outcome nor rewards; its outcome is unknown, which is not failure.",
    "numbers_from_text": "A number or yes/no field was written as text or as the other kind and was converted.",
    "observations_missing": "Steps have an action but no observation; those of one group count as one and the same state.",
    "order_doubtful": "The steps of a rollout do not seem to stand in the order in which they happened; "
    "credit that follows the order is unreliable there.",
    "outcome_partly_null": "Some rows of a rollout say its outcome is unknown and others give it; the value was used.",
    "rollout_ids_renamed": "Two rollouts of one group have the same id (in the file, or since the chosen grouping put them "
    "together); the later was renamed.",
    "rollout_unfinished": "The recording of a rollout broke off before its end; its outcome is unknown, which is not failure.",
    "rows_differ": "Rows of one rollout name different training steps or task families; the first was used.",
    "step_gap": "The step numbers of a rollout leave some out.",
    "step_missing": "Rows have an action but no step number; they were numbered in the order of the file.",
    "step_repeat": "A step number occurs twice in one rollout; the order of the file decides.",
    "surrogates_replaced": "Text held broken characters (lone surrogates or bytes that are no UTF-8); each was replaced "
    "by its escaped form.",
    "branches_left_out": "A rollout is a tree of messages with several ends (a rewritten context, a sub-agent); the branch "
    "that was sampled last was read.",
    "extras_disagree": "An extra column contradicts the score (right where the score says wrong); such columns may belong to "
    "other rows, so only the score was used.",
    "group_from_prompt": "The file names no task; rollouts with the same prompt were taken as one group.",
    "rewards_all_equal": "All rollouts of several tasks have the same reward; a reward function may have returned one value "
    "for all of them.",
    "rewards_summed": "A rollout has several rewards; their sum is its outcome (equal weights unless the file has some).",
    "turns_flattened": "A conversation of several turns was written as one text; it is one step, so only rollout-level "
    "estimators say anything.",
}
