// A JSON API as many are written: Fastify with its plugins for ETag, CORS and compression, each as it is by default.
// Readers need no key, writers have a token, and some pages are for the holder of an API key. PORT says where it listens.
'use strict';
const app = require('fastify')();

app.register(require('@fastify/cors'), { origin: ['https://shop.example', 'https://admin.example'] });
app.register(require('@fastify/compress'));
app.register(require('@fastify/etag'));

const tokens = { 'token-of-anna': 'anna', 'token-of-ben': 'ben' };
const keys = { 'key-of-carla': 'carla', 'key-of-david': 'david' };
// Long enough to be worth compressing.
const text = 'What it says, at some length. '.repeat(100);
const articles = new Map([1, 2, 3].map((id) => [String(id), { id: String(id), version: 0, text }]));
let failing = false;

const bearer = async (request, reply) => {
  request.user = tokens[(request.headers.authorization ?? '').replace('Bearer ', '')];
  if (!request.user) reply.code(401).send({ error: 'no token' });
};
const keyed = async (request, reply) => {
  request.user = keys[request.headers['x-api-key']];
  if (!request.user) reply.code(401).send({ error: 'no key' });
};
const group = '"articles"';
const forAll = (reply) => reply.header('Cache-Control', 'public, max-age=60, stale-if-error=600').header('Cache-Groups', group);
const changed = (reply) => reply.header('Cache-Group-Invalidation', group);

app.register(async (routes) => {
  routes.get('/articles', async (request, reply) => {
    forAll(reply);
    return [...articles.values()];
  });
  routes.get('/articles/:id', async (request, reply) => {
    const article = articles.get(request.params.id);
    if (!article) return reply.code(404).send({ error: 'no such article' });
    forAll(reply);
    return article;
  });
  routes.post('/articles', { preHandler: bearer }, async (request, reply) => {
    const article = { id: String(articles.size + 1), version: 0, text };
    articles.set(article.id, article);
    return changed(reply).code(201).header('Location', `/articles/${article.id}`).send(article);
  });
  routes.put('/articles/:id', { preHandler: bearer }, async (request, reply) => {
    const article = { id: request.params.id, version: request.body.version, text };
    articles.set(article.id, article);
    changed(reply);
    return article;
  });
  routes.delete('/articles/:id', { preHandler: bearer }, async (request, reply) => {
    articles.delete(request.params.id);
    return changed(reply).code(204).send();
  });

  // Says how long, and nothing of groups; fails when it is told to.
  routes.get('/news', async (request, reply) => {
    if (failing) return reply.code(503).send({ error: 'the database is away' });
    reply.header('Cache-Control', 'max-age=1, stale-if-error=600');
    return { news: text };
  });
  routes.post('/failing/:how', async (request) => {
    failing = request.params.how === 'on';
    return { failing };
  });

  // By a token: the first says nothing of caches, the second forgets to say that it is private.
  routes.get('/me', { preHandler: bearer }, async (request) => ({ user: request.user, text }));
  routes.get('/orders', { preHandler: bearer }, async (request, reply) => {
    reply.header('Cache-Control', 'max-age=60');
    return { user: request.user, text };
  });
  // By an API key: nothing, private, and the same for all who have the same key.
  routes.get('/quota', { preHandler: keyed }, async (request) => ({ user: request.user, text }));
  routes.get('/plan', { preHandler: keyed }, async (request, reply) => {
    reply.header('Cache-Control', 'private, max-age=60');
    return { user: request.user, text };
  });
  routes.get('/report', { preHandler: keyed }, async (request, reply) => {
    // The plugin for CORS has written Vary: Origin; without the first word here it would be gone.
    reply.header('Cache-Control', 'max-age=60').header('Vary', 'Origin, X-Api-Key');
    return { user: request.user, text };
  });
});

app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
