// Walking the graph by keyboard: right along an edge, left back, up and down among the edges that leave a node.
const EMIT_DELAY = 120;   // milliseconds of rest before a walk is reported: holding a key does not flood the page

function onKey(panel, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const actions = {
    ArrowRight: () => walkForward(panel), ArrowLeft: () => walkBack(panel),
    ArrowUp: () => nextSibling(panel, -1), ArrowDown: () => nextSibling(panel, 1),
    Home: () => walkTo(panel, { kind: "node", id: panel.structure.node[startRow(panel)] }),
    Escape: () => walkTo(panel, { kind: null, id: null }),
    "0": () => fitLinked(panel), "+": () => zoomBy(panel, 1.25), "-": () => zoomBy(panel, 0.8),
    x: () => focusPeer(panel) || panel.component.setTriggerValue("flip", true),
    n: () => otherRollout(panel, 1), p: () => otherRollout(panel, -1),
    PageDown: () => otherRollout(panel, 1), PageUp: () => otherRollout(panel, -1),
    "/": () => document.querySelector(`input[aria-label="${panel.wanted.data.search}"]`)?.focus(),
    "?": () => toggleHelp(panel),
  };
  if (event.key === "Escape" && !panel.help.hidden) actions.Escape = () => toggleHelp(panel, false);
  const act = actions[event.key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act();
}

function startRow(panel) {
  const { kind, layer } = { kind: panel.structure.kind, layer: panel.structure.x };
  const named = kind.findIndex((each) => each === "root" || each === "start");
  return named >= 0 ? named : layer.indexOf(Math.min(...layer));
}

function currentRow(panel) {
  return panel.current?.kind === "node" ? panel.rowOfNode.get(panel.current.id) : startRow(panel);
}

function walkForward(panel) {
  const { structure } = panel;
  if (panel.current?.kind === "edge") {
    const at = panel.rowOfEdge.get(panel.current.id);
    panel.trail.push(structure.node[structure.from[at]]);
    return walkTo(panel, { kind: "node", id: structure.node[structure.to[at]] });
  }
  if (panel.current?.kind !== "node") return walkTo(panel, { kind: "node", id: structure.node[startRow(panel)] });
  const following = alongPath(panel);
  const leaving = following === undefined ? panel.leaving[currentRow(panel)] : [following];
  if (leaving.length === 0) return undefined;
  const busiest = leaving.reduce((best, at) => (structure.count[at] > structure.count[best] ? at : best));
  panel.trail.push(panel.current.id);
  return walkTo(panel, { kind: "node", id: structure.node[structure.to[busiest]] });
}

// The edge on which the highlighted rollout goes on from here: the next one it takes, where it comes back several times.
function alongPath(panel) {
  const edges = panel.paths[0]?.edges ?? [], row = currentRow(panel);
  const leaves = (at) => panel.structure.from[at] === row;
  const ahead = edges.findIndex((at, rank) => rank >= panel.along && leaves(at));
  const rank = ahead >= 0 ? ahead : edges.findIndex(leaves);
  if (rank < 0) return undefined;
  panel.along = rank + 1;
  return edges[rank];
}

// The page knows the rollouts; it answers with a path and a selection.
function otherRollout(panel, by) {
  clearTimeout(panel.emitTimer);
  panel.along = 0;
  const { kind, id } = panel.current ?? { kind: null, id: null };
  panel.component.setTriggerValue("rollout", { by, kind, id, version: panel.structure.version });
}

function walkBack(panel) {
  const { structure } = panel;
  if (panel.current?.kind === "edge") {
    return walkTo(panel, { kind: "node", id: structure.node[structure.from[panel.rowOfEdge.get(panel.current.id)]] });
  }
  const before = panel.trail.pop();
  if (before !== undefined) return walkTo(panel, { kind: "node", id: before });
  const edges = panel.paths[0]?.edges ?? [], row = currentRow(panel);
  const arriving = [...edges.filter((at) => structure.to[at] === row), ...panel.arriving[row]];
  return arriving.length ? walkTo(panel, { kind: "node", id: structure.node[structure.from[arriving[0]]] }) : undefined;
}

function nextSibling(panel, step) {
  const { structure } = panel;
  const onEdge = panel.current?.kind === "edge";
  const from = onEdge ? structure.from[panel.rowOfEdge.get(panel.current.id)] : currentRow(panel);
  const siblings = panel.leaving[from];
  if (siblings.length === 0) return;
  const now = onEdge ? siblings.indexOf(panel.rowOfEdge.get(panel.current.id)) : step > 0 ? -1 : 0;
  const next = siblings[(now + step + siblings.length) % siblings.length];
  walkTo(panel, { kind: "edge", id: structure.edge[next] });
}

function walkTo(panel, selection) {
  choose(panel, selection, true);
  clearTimeout(panel.emitTimer);
  panel.emitTimer = setTimeout(() => emit(panel), EMIT_DELAY);
}
