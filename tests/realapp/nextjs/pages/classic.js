// The older router: a page with data of its own, made anew after a second.
export async function getStaticProps() {
  return { props: { text: 'A classic page. '.repeat(200) }, revalidate: 1 };
}

export default function Classic({ text }) {
  return <main><h1>Classic</h1><p>{text}</p></main>;
}
