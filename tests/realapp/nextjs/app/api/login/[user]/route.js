export async function POST(request, { params }) {
  const { user } = await params;
  return new Response('welcome', { headers: { 'Set-Cookie': `user=${user}; Path=/; HttpOnly` } });
}
