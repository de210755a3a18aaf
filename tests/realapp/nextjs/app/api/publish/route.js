// What a content system calls after a change: Next.js makes its pages anew, and the cache in front validates them.
import { revalidatePath } from 'next/cache';

export async function POST() {
  revalidatePath('/', 'layout');
  return new Response('published', { headers: { 'Cache-Group-Invalidation': '"pages"' } });
}
