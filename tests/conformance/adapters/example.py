import base64
import json
import sys

from protego import Protego

for line in sys.stdin:
    case = json.loads(line)
    text = base64.b64decode(case["body"]).decode("utf-8-sig", "ignore")
    is_one = len(case["tokens"]) == 1
    allowed = Protego.parse(text).can_fetch(case["url"], case["tokens"][0])
    print(json.dumps({"allowed": allowed} if is_one else {}), flush=True)
