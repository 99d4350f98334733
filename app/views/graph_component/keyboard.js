// Walking the graph by keyboard: right along an edge, left back, up and down among the edges that leave a node.
const EMIT_DELAY = 120;   // milliseconds of rest before a walk is reported: holding a key does not flood the page

function onKey(panel, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const actions = {
    ArrowRight: () => walkForward(panel), ArrowLeft: () => walkBack(panel),
    ArrowUp: () => nextSibling(panel, -1), ArrowDown: () => nextSibling(panel, 1),
    Home: () => walkTo(panel, { kind: "node", id: panel.structure.node[startRow(panel)] }),
    Escape: () => walkTo(panel, { kind: null, id: null }),
    "0": () => fitAll(panel, true), "+": () => zoomBy(panel, 1.25), "-": () => zoomBy(panel, 0.8),
    x: () => panel.component.setTriggerValue("flip", true),
  };
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
  const leaving = panel.leaving[currentRow(panel)];
  if (leaving.length === 0) return undefined;
  const busiest = leaving.reduce((best, at) => (structure.count[at] > structure.count[best] ? at : best));
  panel.trail.push(panel.current.id);
  return walkTo(panel, { kind: "node", id: structure.node[structure.to[busiest]] });
}

function walkBack(panel) {
  const { structure } = panel;
  if (panel.current?.kind === "edge") {
    return walkTo(panel, { kind: "node", id: structure.node[structure.from[panel.rowOfEdge.get(panel.current.id)]] });
  }
  const before = panel.trail.pop();
  if (before !== undefined) return walkTo(panel, { kind: "node", id: before });
  const arriving = panel.arriving[currentRow(panel)];
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
  select(panel, selection, true);
  clearTimeout(panel.emitTimer);
  panel.emitTimer = setTimeout(() => emit(panel), EMIT_DELAY);
}
