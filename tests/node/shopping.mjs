// A mini-app on the published SDK, as an author would write one: two tools, transcripts, layouts, storage, speech.
// Says on standard output what happens to it, one JSON array a line.
//
// node shopping.mjs SDK_FOLDER PORT API_KEY

import { pathToFileURL } from "node:url";

const [folder, port, apiKey] = process.argv.slice(2);
const { AppServer } = await import(pathToFileURL(`${folder}/node_modules/@mentra/sdk/dist/index.js`));

const tell = (...what) => process.stdout.write(JSON.stringify(what) + "\n");

class Shopping extends AppServer {
  // What there is of a session. It goes with the socket, as in most published apps.
  lists = new Map();

  async onSession(session, sessionId, userId) {
    tell("session", sessionId, userId, session.capabilities?.modelName ?? null, session.settings.get("greeting"));
    this.lists.set(sessionId, []);
    session.events.onDisconnected((info) => {
      this.lists.delete(sessionId);
      tell("disconnected", info.code ?? null);
    });
    session.events.onConnected(() => tell("connected"));
    session.events.onError((error) => tell("error", String(error.message ?? error)));
    session.events.onTranscription((data) => {
      if (data.isFinal) tell("heard", data.text);
      else tell("hearing", data.text);
    });
    session.events.onButtonPress((data) => {
      if (this.lists.has(sessionId)) tell("button", data.buttonId, data.pressType);
    });
    session.layouts.showTextWall("Shopping is ready");
    await session.simpleStorage.set("opened", "yes");
    await session.simpleStorage.flush?.();
    tell("stored", await session.simpleStorage.get("opened"));
  }

  // Without `super.onStop`, as in most published apps: the SDK leaves the socket open then.
  async onStop(sessionId, userId, reason) {
    tell("stop", sessionId, userId, reason);
  }

  async onToolCall(call) {
    tell("tool", call.toolId, call.toolParameters, call.userId, Boolean(call.activeSession));
    if (call.toolId === "add_item") {
      call.activeSession.layouts.showReferenceCard("Shopping", `${call.toolParameters.item} is on the list`);
      return `I put ${call.toolParameters.item} on the list.`;
    }
    if (call.toolId === "announce") {
      call.activeSession.audio
        .speak("There are two things on your list.")
        .then((result) => tell("spoken", result.success))
        .catch((error) => tell("spoken", false, String(error)));
      return "GIVE_APP_CONTROL_OF_TOOL_RESPONSE";
    }
    return undefined;
  }
}

const app = new Shopping({ packageName: "com.example.shopping", apiKey, port: Number(port) });
await app.start();
tell("serving");
