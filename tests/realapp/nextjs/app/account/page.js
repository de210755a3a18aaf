// One visitor's own page: it reads a cookie, so Next.js makes it for each request.
import { cookies } from 'next/headers';

export default async function Account() {
  const user = (await cookies()).get('user')?.value ?? 'nobody';
  return <p id="user">{`account of ${user}`}</p>;
}
