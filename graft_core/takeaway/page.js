// Draws the graph of a standalone page. Positions, colours and dashes are given; texts are set as text only.
"use strict";
const given = JSON.parse(document.getElementById("data").textContent);
const SHAPES = { start: "custom", root: "custom", ordinary: "dot", success: "star", failure: "diamond", unknown: "square" };

function tip(text) {
  if (!text) return undefined;
  const box = document.createElement("div");
  box.textContent = text;
  return box;
}

function triangle({ ctx, x, y, style }) {
  const r = style.size;
  return {
    drawNode() {
      ctx.beginPath();
      ctx.moveTo(x + r, y);
      ctx.lineTo(x - 0.72 * r, y - 0.95 * r);
      ctx.lineTo(x - 0.72 * r, y + 0.95 * r);
      ctx.closePath();
      ctx.fillStyle = style.color;
      ctx.strokeStyle = style.borderColor;
      ctx.lineWidth = style.borderWidth;
      ctx.fill();
      ctx.stroke();
    },
    nodeDimensions: { width: 2 * r, height: 2 * r },
  };
}

function nodeItem(node) {
  const shape = SHAPES[node.kind];
  return {
    id: node.id, x: node.x, y: node.y, shape, size: node.size, label: shape === "custom" ? undefined : node.label || undefined,
    title: tip(node.tip), borderWidth: node.border, color: { background: node.fill, border: node.outline },
    ...(shape === "custom" ? { ctxRenderer: triangle } : {}),
  };
}

function edgeItem(edge) {
  const loop = edge.from === edge.to;
  const bent = { enabled: true, type: edge.curve > 0 ? "curvedCW" : "curvedCCW", roundness: Math.abs(edge.curve) };
  return {
    id: edge.id, from: edge.from, to: edge.to, width: edge.width, title: tip(edge.tip), dashes: edge.dashes || false,
    color: { color: edge.ink, highlight: edge.ink, hover: edge.ink, inherit: false },
    ...(loop ? { selfReference: edge.loop } : { smooth: edge.curve === 0 ? false : bent }),
  };
}

const options = {
  physics: false,
  layout: { improvedLayout: false },
  interaction: { hover: true, tooltipDelay: 80, dragNodes: false, keyboard: { enabled: true, bindToWindow: false } },
  nodes: { font: { size: 11, color: "#31333f", face: "system-ui, sans-serif", multi: false, strokeWidth: 3, strokeColor: "#ffffff" } },
  edges: { arrows: { to: { enabled: true, scaleFactor: 0.45 } }, selectionWidth: 1.5, hoverWidth: 1 },
};
const frame = document.getElementById("graph");
const network = new vis.Network(frame, { nodes: given.nodes.map(nodeItem), edges: given.edges.map(edgeItem) }, options);
network.once("afterDrawing", () => { frame.dataset.drawn = String(given.nodes.length); });
network.fit({ animation: false });
