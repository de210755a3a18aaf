import Image from 'next/image';

export default function Gallery() {
  return <Image src="/photo.png" width={320} height={240} alt="A photo" />;
}
