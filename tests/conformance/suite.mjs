// Drives the public HTTP cache suite; the verdicts are made in tests/suites/src/conformance.
//   node suite.mjs list FILE             every test that a shared cache can take, and the results that came with the suite
//   node suite.mjs run FILE BASE         runs them all against BASE, a hundred at once, as the suite's own command does
//   node suite.mjs run FILE BASE ID...   runs these, one after the other
//   node suite.mjs show FILE BASE ID...  the same, and prints every message that the client sent and got
// FILE receives JSON. Runs in the folder that holds node_modules.

import fs from 'node:fs'
import { createRequire } from 'node:module'
import fetch from 'node-fetch'
import { getResults, runTests } from 'http-cache-tests/client/runner.mjs'
import peers from 'http-cache-tests/results/index.mjs'
import suites from 'http-cache-tests/tests/index.mjs'
import surrogate from 'http-cache-tests/tests/surrogate-control.mjs'

const AT_ONCE = 100
const [what, file, base, ...ids] = process.argv.slice(2)
const all = [...suites, surrogate]
  .map(suite => ({ ...suite, tests: suite.tests.filter(test => test.browser_only !== true) }))

function list () {
  const require = createRequire(import.meta.url)
  return {
    suites: all.map(suite => ({
      name: suite.name,
      apart: suite.id === surrogate.id,
      tests: suite.tests.map(test => ({
        id: test.id,
        name: test.name,
        kind: test.kind ?? 'required',
        depends_on: test.depends_on ?? []
      }))
    })),
    peers: peers.map(peer => ({
      name: peer.name,
      type: peer.type,
      version: peer.version,
      results: JSON.parse(fs.readFileSync(require.resolve(`http-cache-tests/results/${peer.file}`), 'utf8'))
    }))
  }
}

async function run () {
  const wanted = all
    .map(suite => ({
      ...suite,
      tests: suite.tests
        .filter(test => ids.length === 0 || ids.includes(test.id))
        .map(test => ({ ...test, dump: what === 'show' }))
    }))
  await runTests(wanted, fetch, false, base, ids.length === 0 ? AT_ONCE : 1)
  return getResults()
}

const answer = what === 'list' ? list() : await run()
fs.writeFileSync(file, JSON.stringify(answer, null, 1))
