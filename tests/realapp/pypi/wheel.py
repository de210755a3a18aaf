"""Builds a wheel with nothing but the standard library: wheel.py FOLDER NAME VERSION BYTES [REQUIREMENT...]"""

import base64
import hashlib
import random
import sys
import zipfile

folder, name, version, size, *requirements = sys.argv[1:]
module = name.replace("-", "_")
info = f"{module}-{version}.dist-info"
metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
metadata += "".join(f"Requires-Dist: {requirement}\n" for requirement in requirements)
files = {
    f"{module}/__init__.py": f'VERSION = "{version}"\n'.encode(),
    # The same in each run, and nothing that could be compressed away.
    f"{module}/content": random.Random(name + version).randbytes(int(size)),
    f"{info}/METADATA": metadata.encode(),
    f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: larder\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
record = ""
for path, content in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record += f"{path},sha256={digest},{len(content)}\n"
files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
with zipfile.ZipFile(f"{folder}/{module}-{version}-py3-none-any.whl", "w") as wheel:
    for path, content in files.items():
        wheel.writestr(path, content)
