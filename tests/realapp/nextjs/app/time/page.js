// Made anew after a second, and then another one.
export const revalidate = 1;

export default function Time() {
  return <p>Made at <time>{new Date().toISOString()}</time></p>;
}
