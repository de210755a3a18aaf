// Made once, when the site is built.
export default function Start() {
  return <h1>Start page, the same for all</h1>;
}
