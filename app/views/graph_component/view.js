// The picture's own mount is this small on purpose: it travels again with every change of colour.
export default async function mountView(component) {
  const library = await openRegistry(BUILD).library;
  return library.showPanel(component);
}
