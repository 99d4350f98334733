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
  panel.frame.style.height = data.height + "px";
  const structure = await structureFor(openRegistry(BUILD), data.version);
  if (panel.turn !== turn) return dispose;
  panel.wanted = { structure, data, numbers: { nodes: decode(data.nodes), edges: decode(data.edges) } };
  present(panel);
  return dispose;
}

// In a hidden tab the frame has no size, and whatever is fitted to it would be lost: wait until it has one.
function present(panel) {
  if (panel.frame.clientWidth === 0) return;
  const { structure, data, numbers } = panel.wanted;
  const theme = readTheme(panel.root);
  panel.scales = data.scales;
  panel.link = data.link;
  if (panel.source !== structure) build(panel, structure, theme, numbers);
  else repaint(panel, theme, numbers);
  showMarks(panel, data);
  followSelection(panel, data.selection);
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
    caption: root.querySelector(".graft-caption"), spoken: root.querySelector(".graft-spoken"), help: root.querySelector(".graft-help"), pending: [],
  };
  panel.listeners = new AbortController();
  const { signal } = panel.listeners;
  const tools = {
    in: () => zoomBy(panel, 1.25), out: () => zoomBy(panel, 0.8), fit: () => fitLinked(panel), png: () => downloadPng(panel),
    help: () => toggleHelp(panel),
  };
  fillHelp(panel.help);
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
  openRegistry(BUILD).panels.add(panel);
  return panel;
}

function closePanel(panel) {
  clearTimeout(panel.emitTimer);
  panel.listeners.abort();
  panel.resize.disconnect();
  panel.network?.destroy();
  panel.network = undefined;
  panels.delete(panel.root);
  openRegistry(BUILD).panels.delete(panel);
}

// Plain wheel belongs to the page; only with Ctrl (or Cmd) does it reach the zoom of vis-network.
function onWheel(panel, event) {
  if (event.ctrlKey || event.metaKey) panel.touched = true;
  else event.stopPropagation();
}

// A picture is arranged and fitted anew on resizing for as long as the reader has not moved the view.
function onResize(panel) {
  if (!panel.wanted || panel.frame.clientWidth === 0) return;
  if (!panel.network) return present(panel);
  if (panel.touched) return;
  panel.network.setSize("100%", "100%");
  panel.structure = arranged(panel.source, panel.frame);
  panel.nodes.update(panel.structure.node.map((id, at) => ({ id, x: panel.structure.x[at], y: panel.structure.y[at] })));
  panel.structure.node.forEach((_, at) => inkNode(panel, at));   // an update brings back the colours of the beginning
  fitAll(panel, false);
}

function build(panel, source, theme, numbers) {
  panel.network?.destroy();
  const structure = arranged(source, panel.frame);
  Object.assign(panel, {
    source, structure, theme, nodeNumbers: numbers.nodes, edgeNumbers: numbers.edges, current: null, trail: [], widths: new Map(),
    touched: false, fitted: false, lastTold: undefined, pending: [], paths: [], along: 0, found: [], twins: [],
    marks: "", toldView: "", ...indexes(structure),
  });
  panel.boost = Math.min(Math.max(1 / fittingScale(panel), 1), 2.5);
  panel.nodes = new vis.DataSet(structure.node.map((_, at) => nodeItem(structure, theme, at, numbers.nodes[at])));
  panel.edges = new vis.DataSet(structure.edge.map((_, at) => edgeItem(structure, theme, at, numbers.edges[at], panel.boost)));
  panel.network = new vis.Network(panel.frame, { nodes: panel.nodes, edges: panel.edges }, networkOptions(panel));
  panel.network.on("click", (event) => onClick(panel, event));
  panel.network.on("beforeDrawing", (ctx) => drawUnderlay(panel, ctx));
  panel.network.on("afterDrawing", (ctx) => drawOverlay(panel, ctx));
  const frame = panel.frame.querySelector(".vis-network");
  frame.tabIndex = 0;
  frame.setAttribute("role", "application");
  frame.setAttribute("aria-label", `Graph, ${structure.caption}. Arrow keys walk along edges, x flips A and B, question mark lists all keys.`);
  panel.caption.textContent = structure.caption;
  drawLegend(panel);
  fitAll(panel, false);
}

function networkOptions(panel) {
  const many = panel.structure.edge.length > MANY_EDGES;
  return {
    physics: false, autoResize: true, layout: { improvedLayout: false, randomSeed: 1 },
    nodes: { chosen: { node: (style) => { style.borderColor = panel.theme.accent; style.borderWidth = 3; }, label: false } },
    edges: {
      smooth: false, arrows: { to: { enabled: true, scaleFactor: 0.42 } }, arrowStrikethrough: false,
      selectionWidth: 0, hoverWidth: 0, chosen: { edge: (style) => glow(style, panel.theme.accent), label: false },
    },
    interaction: {
      dragNodes: false, hover: false, selectConnectedEdges: false, tooltipDelay: 140, keyboard: false, zoomSpeed: 0.7,
      hideEdgesOnDrag: many, hideEdgesOnZoom: many,
    },
  };
}

function glow(style, colour) {
  Object.assign(style, { width: style.width + 2.5, shadow: true, shadowColor: colour, shadowSize: 9, shadowX: 0, shadowY: 0 });
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
    aside: new Set(structure.aside),
    chains: structure.edge.map((_, at) => at).filter((at) => structure.length[at] > 1),
    edgesByCount: structure.edge.map((_, at) => at).sort((one, other) => structure.count[other] - structure.count[one]),
  };
}

// Only what has another colour than before is touched.
function repaint(panel, theme, numbers) {
  const everything = !sameTheme(panel.theme, theme);
  const before = { nodes: panel.nodeNumbers, edges: panel.edgeNumbers };
  Object.assign(panel, { theme, nodeNumbers: numbers.nodes, edgeNumbers: numbers.edges });
  numbers.nodes.forEach((number, at) => { if (everything || number !== before.nodes[at]) inkNode(panel, at); });
  numbers.edges.forEach((number, at) => { if (everything || number !== before.edges[at]) inkEdge(panel, at); });
  if (everything) panel.widths.clear();
  drawLegend(panel);
  panel.network.redraw();
}

// Bands behind the edges of one or two rollouts, rings around what a search found, and the other places of the selection.
function showMarks(panel, { paths, found, twins, title, note }) {
  const told = JSON.stringify([paths, found, twins, title, note]);
  if (told === panel.marks) return;
  const rows = (ids, of) => ids.filter((id) => of.has(id)).map((id) => of.get(id));
  panel.marks = told;
  panel.paths = paths.map(({ name, edges }) => ({ name, edges: rows(edges, panel.rowOfEdge) }));
  panel.found = rows(found, panel.rowOfNode);
  panel.twins = twins;
  panel.caption.textContent = [title, panel.structure.caption, note].filter(Boolean).join(" · ");
  drawLegend(panel);
  panel.network.redraw();
}

function onClick(panel, event) {
  const at = event.pointer.DOM;
  const node = panel.network.getNodeAt(at);
  const edge = node === undefined ? panel.network.getEdgeAt(at) : undefined;
  const kind = node !== undefined ? "node" : edge !== undefined ? "edge" : null;
  panel.trail = [];
  panel.along = 0;
  clearTimeout(panel.emitTimer);
  choose(panel, { kind, id: node ?? edge ?? null }, false);
  emit(panel);
}

// The reader's own choice, which linked pictures share at once.
function choose(panel, selection, bringIntoView) {
  panel.twins = [];
  select(panel, selection, bringIntoView);
  shareSelection(panel, selection);
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
    const leave = panel.leaving[at].length;
    return `${structure.kind[at]} node ${structure.label[at]}, ${structure.visits[at]} visits, ${leave} edges leave`;
  }
  const at = panel.rowOfEdge.get(panel.current.id);
  return `edge ${structure.edgeLabel[at]}, taken ${structure.count[at]} times, to ${structure.label[structure.to[at]]}`;
}

function emit(panel) {
  const selection = { kind: panel.current?.kind ?? null, id: panel.current?.id ?? null, version: panel.structure.version };
  panel.pending = [...panel.pending.slice(-20), keyOf(selection)];
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
  // Only as far as it takes: what was in view stays in view where it can.
  const inside = (value, margin, size) => Math.min(Math.max(value, margin), Math.max(size - margin, margin));
  const shift = { x: at.x - inside(at.x, 16, width), y: at.y - inside(at.y, 16, height) };
  if (!shift.x && !shift.y) return;
  panel.touched = true;
  const centre = panel.network.canvasToDOM(panel.network.getViewPosition());
  const position = panel.network.DOMtoCanvas({ x: centre.x + shift.x, y: centre.y + shift.y });
  panel.network.moveTo({ position, animation: motion() });
}

function spotOf(panel, selection) {
  const { structure } = panel;
  if (selection.kind === "edge") return edgeMiddle(structure, panel.rowOfEdge.get(selection.id));
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
  const { left, right, top, bottom } = extent(panel.structure);
  const scale = fittingScale(panel);
  const aside = (sides(panel.structure) - 2 * SIDE) / 2 / scale;
  const position = { x: (left + right) / 2 - aside, y: (top + bottom) / 2 };
  panel.network.moveTo({ position, scale, animation: animated ? motion() : false });
}

function fitLinked(panel) {
  [panel, ...peersOf(panel)].forEach((each) => fitAll(each, true));
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
    ready: () => Boolean(panel.network?.body && panel.fitted),
    screen: (kind, id) => panel.network.canvasToDOM(spotOf(panel, { kind, id })),
    view: () => ({ scale: panel.network.getScale(), position: panel.network.getViewPosition() }),
    positions: () => panel.network.getPositions(),
    colour: (kind, id) => {
      const { nodes, edges } = panel.network.body;
      return kind === "node" ? nodes[id].options.color.background : edges[id].options.color.color;
    },
    dashes: (id) => panel.network.body.edges[id].options.dashes,
    current: () => panel.current,
    theme: () => panel.theme.name,
    paths: () => panel.paths.map(({ edges }) => edges.map((at) => panel.structure.edge[at])),
    found: () => panel.found.map((at) => panel.structure.node[at]),
    twins: () => panel.twins,
    ends: (id) => {
      const at = panel.rowOfEdge.get(id), { node, from, to } = panel.structure;
      return [node[from[at]], node[to[at]]];
    },
    labels: () => panel.written,
    kinds: () => panel.structure.kind,
    chains: () => panel.chains.map((at) => [panel.structure.edge[at], panel.structure.length[at]]),
  };
}
