// A shop as many are written: sessions for everybody come before the static files, so each response may start one.
// PORT says where it listens, COOKIE what its session cookie is called.
'use strict';
const path = require('node:path');
const express = require('express');
const session = require('express-session');

const app = express();
app.use(session({
  name: process.env.COOKIE,
  secret: 'of this run',
  resave: false,
  saveUninitialized: true,
}));
app.use(express.static(path.join(__dirname, 'public'), { maxAge: '1h' }));

const visitor = (request) => `${request.sessionID} ${request.session.user ?? 'nobody'}`;

app.post('/login/:user', (request, response) => {
  request.session.user = request.params.user;
  response.send('welcome');
});
// One visitor's own pages: the first says nothing about caching, the second says what it is.
app.get('/me', (request, response) => response.send(visitor(request)));
app.get('/account', (request, response) => {
  response.set('Cache-Control', 'private, max-age=60').send(visitor(request));
});
// The same for all, and it says so.
app.get('/news', (request, response) => {
  response.set('Cache-Control', 'public, max-age=60').send('<h1>News</h1>');
});

app.listen(Number(process.env.PORT), '127.0.0.1');
