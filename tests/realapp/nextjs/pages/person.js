// The older router: a page made for each request, by a cookie.
export async function getServerSideProps({ req }) {
  return { props: { user: req.cookies.user ?? 'nobody' } };
}

export default function Person({ user }) {
  return <p id="user">{`account of ${user}`}</p>;
}
