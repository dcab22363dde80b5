// What the adapters in JavaScript share: a line of JSON in, a line of JSON out.
const readline = require("readline");

// `answer` takes body (Buffer), token and URL, and returns an object, or a promise of one.
// A crawler of several names can't be asked of an engine that takes one.
exports.serve = async (answer, name) => {
  if (process.argv.includes("--version")) {
    console.log(require(`${name}/package.json`).version);
    return;
  }
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { body, tokens, url } = JSON.parse(line);
    let found = {};
    if (tokens.length === 1) {
      try {
        found = await answer(Buffer.from(body, "base64"), tokens[0], url);
      } catch (error) {
        found = { error: String(error) };
      }
    }
    process.stdout.write(JSON.stringify(found) + "\n");
  }
};
