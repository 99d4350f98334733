// Keeps the structure of one graph. Panels that show the same structure share it; the last one out removes it.
function keepStructure(registry, structure) {
  const held = registry.structures.get(structure.version) ?? { structure, holders: 0 };
  held.holders += 1;
  registry.structures.set(structure.version, held);
  const waiting = registry.waiting.get(structure.version) ?? [];
  registry.waiting.delete(structure.version);
  waiting.forEach((resolve) => resolve(held.structure));
  return () => {
    held.holders -= 1;
    if (held.holders === 0) registry.structures.delete(structure.version);
  };
}

export default function mountStore(component) {
  return component.data ? keepStructure(openRegistry(BUILD), JSON.parse(new TextDecoder().decode(component.data))) : undefined;
}
