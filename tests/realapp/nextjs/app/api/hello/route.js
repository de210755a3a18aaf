export async function GET(request) {
  return Response.json({ hello: request.cookies.get('user')?.value ?? 'nobody' });
}
