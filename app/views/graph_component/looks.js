// How nodes and edges look. Palette numbers arrive as one character each, "0" = 0.
const FIRST_CODE = 48;
const NEGATIVE_DASH = [7, 4], UNDEFINED_DASH = [1.5, 4];
const SHAPES = { start: "custom", root: "custom", ordinary: "dot", success: "star", failure: "diamond", unknown: "square" };
const SCALES = { start: 1.15, root: 1.0, ordinary: 1.0, success: 1.3, failure: 1.2, unknown: 0.95 };

function readTheme(element) {
  const style = getComputedStyle(element);
  const read = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
  const page = read("--st-background-color", "#ffffff");
  const dark = brightness(page) < 0.5;
  return {
    page, dark, name: dark ? "dark" : "light",
    text: read("--st-text-color", dark ? "#fafafa" : "#31333f"),
    accent: read("--st-primary-color", "#0072b2"),
    font: read("--st-font", "sans-serif"),
    outline: dark ? "#c3c7cf" : "#4a4e57",
    grey: "#969696",
    band: dark ? "rgba(240, 228, 66, 0.28)" : "rgba(230, 159, 0, 0.30)",
    band2: dark ? "rgba(230, 150, 195, 0.60)" : "rgba(170, 60, 130, 0.50)",
  };
}

function sameTheme(one, other) {
  return Boolean(one && other) && Object.keys(one).every((key) => one[key] === other[key]);
}

function brightness(colour) {
  const ink = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  ink.fillStyle = colour;
  ink.fillRect(0, 0, 1, 1);
  const [red, green, blue] = ink.getImageData(0, 0, 1, 1).data;
  return (0.3 * red + 0.59 * green + 0.11 * blue) / 255;
}

function nodeColour(structure, theme, at, number) {
  const hollow = structure.kind[at] === "unknown" || structure.kind[at] === "root";
  const fill = hollow ? undefined : structure.palette.value[number];   // there is none for "no value" either
  const border = fill === undefined && structure.kind[at] === "ordinary" ? theme.grey : theme.outline;
  return { background: fill ?? theme.page, border };
}

function nodeItem(structure, theme, at, number) {
  const kind = structure.kind[at];
  return {
    id: structure.node[at], x: structure.x[at], y: structure.y[at],
    shape: SHAPES[kind], size: structure.size[at] * SCALES[kind],
    color: nodeColour(structure, theme, at, number),
    borderWidth: kind === "unknown" || kind === "root" ? 2 : 1.2,
    title: plainText(structure.tip[at]),
    ...(SHAPES[kind] === "custom" ? { ctxRenderer: drawTriangle } : {}),
  };
}

function inkOf(structure, theme, at, number) {
  const palette = structure.palette[theme.name];
  return (structure.thin[at] ? palette.thin : palette.firm)[number];
}

// `boost` makes up for a picture that had to be shrunk to fit: lines keep their pixels.
function edgeInk(structure, theme, at, number, boost) {
  const palette = structure.palette[theme.name];
  const zero = (palette.firm.length - 2) / 2;
  const undefinedNumber = palette.firm.length - 1;
  const dash = number === undefinedNumber ? UNDEFINED_DASH : number < zero ? NEGATIVE_DASH : null;
  const colour = inkOf(structure, theme, at, number);
  return {
    color: { color: colour, highlight: colour, hover: colour, inherit: false },
    dashes: dash ? dash.map((part) => part * boost) : false,
  };
}

function edgeItem(structure, theme, at, number, boost) {
  return {
    id: structure.edge[at], from: structure.node[structure.from[at]], to: structure.node[structure.to[at]],
    width: structure.width[at] * boost, title: plainText(structure.edgeTip[at]),
    ...edgeInk(structure, theme, at, number, boost),
    ...(isLoop(structure, at) ? selfLoop(structure, at) : { smooth: bend(structure.curve[at]) }),
  };
}

// New colours go straight to the drawn objects: by way of the data sets thousands of edges would take seconds.
function inkNode(panel, at) {
  const { options } = panel.network.body.nodes[panel.structure.node[at]];
  options.color = { ...options.color, ...nodeColour(panel.structure, panel.theme, at, panel.nodeNumbers[at]) };
}

function inkEdge(panel, at) {
  const { options } = panel.network.body.edges[panel.structure.edge[at]];
  const { color, dashes } = edgeInk(panel.structure, panel.theme, at, panel.edgeNumbers[at], panel.boost);
  options.color = { ...options.color, ...color };
  options.dashes = dashes;
}

function bend(curve) {
  if (curve === 0) return false;
  return { enabled: true, type: curve > 0 ? "curvedCW" : "curvedCCW", roundness: Math.abs(curve) };
}

function selfLoop(structure, at) {
  const { radius, angle } = loopCircle(structure, at);
  return { selfReference: { size: radius, angle, renderBehindTheNode: true } };
}

// A tooltip is an element whose text is set as text: rollout text is never read as HTML.
function plainText(text) {
  if (!text) return undefined;
  const box = document.createElement("div");
  box.textContent = text;
  return box;
}

function drawTriangle({ ctx, x, y, style }) {
  const r = style.size;
  return {
    drawNode() {
      ctx.beginPath();
      ctx.moveTo(x + r, y);
      ctx.lineTo(x - 0.72 * r, y - 0.95 * r);
      ctx.lineTo(x - 0.72 * r, y + 0.95 * r);
      ctx.closePath();
      ctx.lineJoin = "round";
      ctx.fillStyle = style.color;
      ctx.strokeStyle = style.borderColor;
      ctx.lineWidth = style.borderWidth;
      ctx.fill();
      ctx.stroke();
    },
    nodeDimensions: { width: 2 * r, height: 2 * r },
  };
}
