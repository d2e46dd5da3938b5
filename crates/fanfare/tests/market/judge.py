"""Validates an OpenAPI document, and responses against it.

Reads lines of JSON: the document first, then [path, response] of each GET. Prints the faults.
"""

import json
import sys

from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

document = json.loads(sys.stdin.readline())
for error in OpenAPIV31SpecValidator(document).iter_errors():
    print("document:", error)
judged = 0
for line in sys.stdin:
    path, answer = json.loads(line)
    operation = document["paths"][path]["get"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    if not schema:
        print(path, "says nothing of its answer")
    for error in Draft202012Validator(schema).iter_errors(answer):
        print(path, error.json_path, error.message[:500])
    judged += 1
print("judged", judged)
