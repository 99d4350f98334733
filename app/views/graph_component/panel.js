// One panel = one picture on the page: built once per structure, repainted in place, cleaned up when it goes.
const panels = new WeakMap();
const MANY_EDGES = 2500;   // above this, edges are left out while dragging and zooming

async function showPanel(component) {
  const root = component.parentElement.querySelector(".graft-panel");
  const panel = panels.get(root) ?? openPanel(root);
  const turn = (panel.turn += 1);
  const dispose = () => { if (panel.turn === turn) closePanel(panel); };   // an overtaken call must not close the newer one
  panel.component = component;
  const { data } = component;
  root.style.height = data.height + "px";
  const structure = await structureFor(openRegistry(BUILD), data.version);
  if (panel.turn !== turn) return dispose;
  const theme = readTheme(root);
  const numbers = { nodes: decode(data.nodes), edges: decode(data.edges) };
  panel.scales = data.scales;
  if (panel.structure !== structure) build(panel, structure, theme, numbers);
  else repaint(panel, theme, numbers);
  showPath(panel, data.path);
  followSelection(panel, data.selection);
  return dispose;
}

function structureFor(registry, version) {
  const held = registry.structures.get(version);
  if (held) return Promise.resolve(held.structure);
  return new Promise((resolve) => {
    registry.waiting.set(version, [...(registry.waiting.get(version) ?? []), resolve]);
  });
}

function decode(characters) {
  return Array.from(characters, (character) => character.charCodeAt(0) - FIRST_CODE);
}

function openPanel(root) {
  const panel = {
    root, turn: 0, frame: root.querySelector(".graft-graph"), legend: root.querySelector(".graft-legend"),
    caption: root.querySelector(".graft-caption"), spoken: root.querySelector(".graft-spoken"), pending: [],
  };
  panel.listeners = new AbortController();
  const { signal } = panel.listeners;
  const tools = { in: () => zoomBy(panel, 1.25), out: () => zoomBy(panel, 0.8), fit: () => fitAll(panel, true), png: () => downloadPng(panel) };
  root.querySelectorAll("[data-do]").forEach((button) => {
    button.addEventListener("click", () => panel.network && tools[button.dataset.do](), { signal });
  });
  panel.frame.addEventListener("keydown", (event) => panel.network && onKey(panel, event), { signal });
  panel.frame.addEventListener("wheel", (event) => onWheel(panel, event), { signal, capture: true, passive: true });
  panel.frame.addEventListener("pointerdown", () => { panel.touched = true; }, { signal, capture: true });
  panel.resize = new ResizeObserver(() => onResize(panel));
  panel.resize.observe(panel.frame);
  panel.frame.graftGraph = inspector(panel);
  panels.set(root, panel);
  return panel;
}

function closePanel(panel) {
  clearTimeout(panel.emitTimer);
  panel.listeners.abort();
  panel.resize.disconnect();
  panel.network?.destroy();
  panel.network = undefined;
  panels.delete(panel.root);
}

// Plain wheel belongs to the page; only with Ctrl (or Cmd) does it reach the zoom of vis-network.
function onWheel(panel, event) {
  if (event.ctrlKey || event.metaKey) panel.touched = true;
  else event.stopPropagation();
}

// In a hidden tab the frame has no size and a fit would be lost: fit as soon as it has one, and again on resizing
// for as long as the reader has not moved the view.
function onResize(panel) {
  if (!panel.network || panel.frame.clientWidth === 0) return;
  if (panel.touched && panel.fitted) return;
  panel.network.setSize("100%", "100%");
  fitAll(panel, false);
}

function build(panel, structure, theme, numbers) {
  panel.network?.destroy();
  Object.assign(panel, {
    structure, theme, nodeNumbers: numbers.nodes, edgeNumbers: numbers.edges, current: null, trail: [], widths: new Map(),
    touched: false, fitted: false, lastTold: undefined, pending: [], path: new Set(), ...indexes(structure),
  });
  panel.nodes = new vis.DataSet(structure.node.map((_, at) => nodeItem(structure, theme, at, numbers.nodes[at])));
  panel.edges = new vis.DataSet(structure.edge.map((_, at) => edgeItem(structure, theme, at, numbers.edges[at])));
  panel.network = new vis.Network(panel.frame, { nodes: panel.nodes, edges: panel.edges }, networkOptions(panel));
  panel.network.on("click", (event) => onClick(panel, event));
  panel.network.on("beforeDrawing", (ctx) => fillPage(panel, ctx));
  panel.network.on("afterDrawing", (ctx) => drawOverlay(panel, ctx));
  const frame = panel.frame.querySelector(".vis-network");
  frame.tabIndex = 0;
  frame.setAttribute("role", "application");
  frame.setAttribute("aria-label", `Graph, ${structure.caption}. Arrow keys walk along edges, x flips A and B.`);
  panel.caption.textContent = structure.caption;
  drawLegend(panel);
  if (panel.frame.clientWidth > 0) fitAll(panel, false);
}

function networkOptions(panel) {
  const many = panel.structure.edge.length > MANY_EDGES;
  return {
    physics: false, autoResize: true, layout: { improvedLayout: false, randomSeed: 1 },
    nodes: { chosen: { node: (style) => { style.borderColor = panel.theme.accent; style.borderWidth = 3; }, label: false } },
    edges: {
      smooth: false, arrows: { to: { enabled: true, scaleFactor: 0.42 } }, arrowStrikethrough: false, selectionWidth: 0, hoverWidth: 0,
      chosen: { edge: (style) => { style.width += 2.5; style.shadow = true; style.shadowColor = panel.theme.accent; style.shadowSize = 9; style.shadowX = 0; style.shadowY = 0; }, label: false },
    },
    interaction: {
      dragNodes: false, hover: false, selectConnectedEdges: false, tooltipDelay: 140, keyboard: false, zoomSpeed: 0.7,
      hideEdgesOnDrag: many, hideEdgesOnZoom: many,
    },
  };
}

function indexes(structure) {
  const leaving = structure.node.map(() => []), arriving = structure.node.map(() => []);
  structure.edge.forEach((_, at) => {
    leaving[structure.from[at]].push(at);
    arriving[structure.to[at]].push(at);
  });
  const height = (at) => structure.y[structure.to[at]] * 10 - structure.curve[at];
  leaving.forEach((edges) => edges.sort((one, other) => height(one) - height(other)));
  arriving.forEach((edges) => edges.sort((one, other) => structure.count[other] - structure.count[one]));
  const special = (at) => (structure.kind[at] === "ordinary" ? 0 : 1);
  const rows = structure.node.map((_, at) => at);
  return {
    leaving, arriving,
    rowOfNode: new Map(structure.node.map((id, at) => [id, at])),
    rowOfEdge: new Map(structure.edge.map((id, at) => [id, at])),
    byImportance: rows.sort((one, other) => special(other) - special(one) || structure.visits[other] - structure.visits[one]),
    edgesByCount: structure.edge.map((_, at) => at).sort((one, other) => structure.count[other] - structure.count[one]),
  };
}

function repaint(panel, theme, numbers) {
  const everything = !sameTheme(panel.theme, theme);
  const { structure } = panel;
  const nodes = [], edges = [];
  numbers.nodes.forEach((number, at) => {
    if (everything || number !== panel.nodeNumbers[at]) nodes.push({ id: structure.node[at], color: nodeColour(structure, theme, at, number) });
  });
  numbers.edges.forEach((number, at) => {
    if (everything || number !== panel.edgeNumbers[at]) edges.push({ id: structure.edge[at], ...edgeInk(structure, theme, at, number) });
  });
  Object.assign(panel, { theme, nodeNumbers: numbers.nodes, edgeNumbers: numbers.edges });
  if (nodes.length) panel.nodes.update(nodes);
  if (edges.length) panel.edges.update(edges);
  if (everything) panel.widths.clear();
  drawLegend(panel);
  panel.network.redraw();
}

// A band behind the edges of one rollout, in place like the colours.
function showPath(panel, wanted) {
  const path = new Set((wanted ?? []).filter((id) => panel.rowOfEdge.has(id)));
  const band = (id) => ({
    id, background: { enabled: path.has(id), color: panel.theme.band, size: panel.structure.width[panel.rowOfEdge.get(id)] + 9, dashes: false },
  });
  const changed = [...new Set([...path, ...panel.path])].filter((id) => path.has(id) !== panel.path.has(id) || panel.bandColour !== panel.theme.band);
  Object.assign(panel, { path, bandColour: panel.theme.band });
  if (changed.length) panel.edges.update(changed.map(band));
}

function onClick(panel, event) {
  const at = event.pointer.DOM;
  const node = panel.network.getNodeAt(at);
  const edge = node === undefined ? panel.network.getEdgeAt(at) : undefined;
  const kind = node !== undefined ? "node" : edge !== undefined ? "edge" : null;
  panel.trail = [];
  clearTimeout(panel.emitTimer);
  select(panel, { kind, id: node ?? edge ?? null }, false);
  emit(panel);
}

function select(panel, selection, bringIntoView) {
  panel.current = selection.kind ? selection : null;
  if (selection.kind === "node") panel.network.setSelection({ nodes: [selection.id], edges: [] }, { highlightEdges: false });
  else if (selection.kind === "edge") panel.network.setSelection({ nodes: [], edges: [selection.id] }, { highlightEdges: false });
  else panel.network.unselectAll();
  panel.spoken.textContent = spokenText(panel);
  if (bringIntoView && panel.current) bringToView(panel, panel.current);
}

function spokenText(panel) {
  if (!panel.current) return "nothing selected";
  const { structure } = panel;
  if (panel.current.kind === "node") {
    const at = panel.rowOfNode.get(panel.current.id);
    return `${structure.kind[at]} node ${structure.label[at]}, ${structure.visits[at]} visits, ${panel.leaving[at].length} edges leave`;
  }
  const at = panel.rowOfEdge.get(panel.current.id);
  return `edge ${structure.edgeLabel[at]}, taken ${structure.count[at]} times, to ${structure.label[structure.to[at]]}`;
}

function emit(panel) {
  const selection = { kind: panel.current?.kind ?? null, id: panel.current?.id ?? null, version: panel.structure.version };
  panel.pending.push(keyOf(selection));
  panel.component.setStateValue("selection", selection);
}

function keyOf(selection) {
  return selection?.kind ? `${selection.kind} ${selection.id}` : "";
}

// The page may tell the selection with every run. Echoes of what was chosen here are recognised and dropped, so a
// slow page never drags the selection back; only a change that the page itself made is followed.
function followSelection(panel, selection) {
  const told = keyOf(selection);
  const echo = panel.pending.lastIndexOf(told);
  if (echo >= 0) {
    panel.pending.splice(0, echo + 1);
  } else if (told !== (panel.lastTold ?? "") && told !== keyOf(panel.current)) {
    const rows = selection?.kind === "edge" ? panel.rowOfEdge : panel.rowOfNode;
    if (!selection?.kind || rows.has(selection.id)) select(panel, selection ?? { kind: null, id: null }, true);
  }
  panel.lastTold = told;
}

function bringToView(panel, selection) {
  const spot = spotOf(panel, selection);
  const at = panel.network.canvasToDOM(spot);
  const { clientWidth: width, clientHeight: height } = panel.frame;
  if (at.x > 60 && at.y > 40 && at.x < width - 60 && at.y < height - 40) return;
  panel.touched = true;
  panel.network.moveTo({ position: spot, animation: motion() });
}

function spotOf(panel, selection) {
  const { structure } = panel;
  if (selection.kind === "edge") {
    const at = panel.rowOfEdge.get(selection.id);
    const middle = edgeMiddle(panel, selection.id);
    return middle ? { x: middle.x, y: middle.y } : { x: structure.x[structure.from[at]], y: structure.y[structure.from[at]] };
  }
  const at = panel.rowOfNode.get(selection.id);
  return { x: structure.x[at], y: structure.y[at] };
}

function motion() {
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  return still ? false : { duration: 200, easingFunction: "easeInOutQuad" };
}

function fitAll(panel, animated) {
  panel.fitted = true;
  if (animated) panel.touched = false;
  const { clientWidth: width, clientHeight: height } = panel.frame;
  const { structure } = panel;
  const reach = (values, sizes) => [Math.min(...values.map((v, at) => v - sizes[at])), Math.max(...values.map((v, at) => v + sizes[at]))];
  const [left, right] = reach(structure.x, structure.size), [top, bottom] = reach(structure.y, structure.size);
  const scale = Math.min((width - 80) / (right - left), (height - 64) / (bottom - top), 1.6);
  const position = { x: (left + right) / 2, y: (top + bottom) / 2 };
  panel.network.moveTo({ position, scale: Math.max(scale, 0.02), animation: animated ? motion() : false });
}

function zoomBy(panel, factor) {
  panel.touched = true;
  panel.network.moveTo({ scale: panel.network.getScale() * factor, animation: motion() });
}

function downloadPng(panel) {
  panel.frame.querySelector("canvas").toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = "graph.png";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }, "image/png");
}

// Read-only questions about the picture, for the browser's console and for tests.
function inspector(panel) {
  return {
    ready: () => Boolean(panel.network && panel.fitted),
    screen: (kind, id) => panel.network.canvasToDOM(spotOf(panel, { kind, id })),
    view: () => ({ scale: panel.network.getScale(), position: panel.network.getViewPosition() }),
    positions: () => panel.network.getPositions(),
    colour: (kind, id) => (kind === "node" ? panel.nodes.get(id).color.background : panel.edges.get(id).color.color),
    dashes: (id) => panel.edges.get(id).dashes,
    current: () => panel.current,
    theme: () => panel.theme.name,
    path: () => [...panel.path],
  };
}
