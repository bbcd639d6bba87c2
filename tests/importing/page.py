"""What C{doc/importing-an-api.md} shows: a document, and the commands that lead from it to an approved call.

It is here as well, since tests of the installed program have no pages; L{tests.importing.test_doc} compares them.
"""

DOCUMENT = """\
openapi: 3.0.3
info: { title: Chat API, version: "1" }
servers: [{ url: https://chat.example }]
security: [{ token: [] }]
paths:
  /api/chat.postMessage:
    post:
      operationId: postMessage
      summary: Post a message
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [channel, text]
              properties:
                channel: { type: string, description: Name of the channel, maxLength: 80 }
                text: { type: string, description: What to say }
                labels: { type: object, additionalProperties: { type: string } }
      responses:
        "200":
          description: It was posted, or why not
          content:
            application/json:
              schema: { type: object, properties: { ok: { type: boolean }, error: { type: string } } }
components:
  securitySchemes:
    token: { type: http, scheme: bearer }
"""
COMMANDS = (
    "aileron connector import chat.yaml --search message",
    "aileron connector import chat.yaml --op postMessage",
    "aileron connector add chat.toml",
    "aileron action add chat-post-message.md",
    "aileron binding setup local://me/chat",
    "aileron action run chat-post-message --arg channel=#general --arg text=Hello",
    "aileron approval approve ID",
)
