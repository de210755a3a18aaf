// Made anew after a second; an editor in draft mode sees the draft.
import { draftMode } from 'next/headers';

export const revalidate = 1;

export default async function News() {
  const { isEnabled } = await draftMode();
  return <h1>{isEnabled ? 'Draft for editors alone' : 'News for all'}</h1>;
}
