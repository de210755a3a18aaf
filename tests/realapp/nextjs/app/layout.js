import Link from 'next/link';
import './style.css';

export const metadata = { title: 'A small site' };

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>
        <nav>
          <Link href="/">Start</Link> <Link href="/news">News</Link> <Link href="/time">Time</Link>
        </nav>
        {children}
      </body>
    </html>
  );
}
