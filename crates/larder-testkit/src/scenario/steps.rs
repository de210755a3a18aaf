//! The steps of a scenario: what each does to larder, the origins and the clients, and what it then looks at.
//!
//! In: a [`Step`] and the running [`World`]. Out: mismatches, or an error where the step cannot be done at all. Calls
//! to larder are made outside of the runtime, everything else within it and within the scenario's time limit.

use std::net::SocketAddr;
use std::time::Instant;

use super::expect;
use super::format::{After, Expect, Step, Wait, Want};
use super::report::Mismatch;
use super::run::{LOOK_EVERY, WAIT_LIMIT, World};
use super::send::{self, Answered, Crowd};
use crate::client::{Connection, Response};
use crate::origin::Log;
use crate::{Error, template};

impl World<'_> {
    /// Does one step and looks at what it expects.
    pub(super) fn step(&mut self, step: &Step) -> Result<Vec<Mismatch>, Error> {
        self.last_response.clear();
        let expect = step.expect.clone().unwrap_or_default();
        let mut out = Vec::new();
        if let Some(times) = step.times {
            for number in 1..=times {
                out = self.request(&numbered(step, number), &expect)?;
                // One that is wrong is enough to read about.
                if !out.is_empty() {
                    out.iter_mut().for_each(|m| m.what = format!("time {number}: {}", m.what));
                    return Ok(out);
                }
            }
        } else if step.is_request() {
            out = self.request(step, &expect)?;
        } else if !step.pipeline.is_empty() {
            out = self.pipeline(step)?;
        } else if let Some(name) = &step.finish {
            let crowd = self.crowd(name)?;
            let answers = self.within(crowd.finish())?;
            out = self.answers(answers, &expect)?;
        } else if let Some(name) = &step.abort {
            let crowd = self.crowd(name)?;
            self.within(crowd.abort())?;
        } else if let Some(name) = &step.hang_up {
            drop(self.kept.remove(name).ok_or_else(|| unknown("connection", name))?);
        } else if let Some(name) = &step.resume {
            let crowd = self.crowds.get(name).ok_or_else(|| unknown("clients", name))?;
            crowd.resume();
        } else if let Some(by) = step.advance.as_deref().and_then(template::duration) {
            self.clock.advance(by);
            self.larder.advance(by);
        } else if let Some(gate) = &step.release {
            self.gates.release(gate);
        } else if let Some(name) = &step.stop_origin {
            let mut origin = self.origins.remove(name).ok_or_else(|| unknown("origin", name))?;
            self.within(origin.stop())?;
            self.origins.insert(name.clone(), origin);
        } else if let Some(name) = &step.start_origin {
            let _entered = self.runtime.enter();
            self.origins.get_mut(name).ok_or_else(|| unknown("origin", name))?.resume()?;
        } else if let Some(text) = &step.reload {
            let config = self.config(text);
            out = reload(self.larder.reload(&config), step.refused.as_deref());
        } else if let Some(wait) = &step.wait {
            out = self.wait(wait)?;
        } else if let Some(talk) = &step.talk {
            let mut connection = self.kept(&talk.on, self.addr(step)?)?;
            let got = self.within(async {
                connection.write(talk.send.as_bytes()).await?;
                connection.read_exact(talk.receive.len() as u64).await
            })??;
            if got != talk.receive.as_bytes() {
                out.push(Mismatch::new("received", &talk.receive, got.escape_ascii().to_string()));
            }
            self.kept.insert(talk.on.clone(), connection);
        }
        out.extend(self.surroundings(&expect));
        Ok(out)
    }

    fn crowd(&mut self, name: &str) -> Result<Crowd, Error> {
        self.crowds.remove(name).ok_or_else(|| unknown("clients", name))
    }

    fn addr(&self, step: &Step) -> Result<SocketAddr, Error> {
        let started = self.at.ok_or_else(|| unknown("larder", "(not started)"))?;
        Ok(if step.admin { started.admin } else { started.addr })
    }

    /// The kept connection of this name, opened where it is new.
    fn kept(&mut self, name: &str, addr: SocketAddr) -> Result<Connection, Error> {
        match self.kept.remove(name) {
            Some(connection) => Ok(connection),
            None => self.within(Connection::open(addr, WAIT_LIMIT))?,
        }
    }

    fn request(&mut self, step: &Step, expect: &Expect) -> Result<Vec<Mismatch>, Error> {
        let addr = self.addr(step)?;
        let request = send::request_of(step, &self.context(), &self.remembered);
        if let Some(After::Close | After::Abort) = step.after {
            let abort = step.after == Some(After::Abort);
            self.within(send::send_and_leave(&request, abort, addr, WAIT_LIMIT))??;
            return Ok(Vec::new());
        }
        if let Some(name) = &step.on {
            let mut connection = self.kept(name, addr)?;
            let response = self.within(connection.exchange(&request))?;
            let switched = response.as_ref().is_ok_and(|response| response.status == 101);
            let mut out = self.answer(&response, expect);
            if expect.closed {
                out.extend(self.closes(&mut connection)?);
            } else if !switched {
                out.extend(nothing_after(&connection));
            }
            self.kept.insert(name.clone(), connection);
            return Ok(out);
        }
        let requests = match step.clients {
            Some(clients) => {
                let of =
                    |number| send::request_of(&numbered(step, number), &self.context(), &self.remembered);
                (1..=clients as u64).map(of).collect()
            }
            None => vec![request],
        };
        let crowd = self.within(send::start(step, requests, addr, WAIT_LIMIT))??;
        match &step.start {
            Some(name) => {
                self.crowds.insert(name.clone(), crowd);
                Ok(Vec::new())
            }
            None => {
                let answers = self.within(crowd.finish())?;
                if let Some(Answered { response: Ok(response), .. }) = answers.first() {
                    self.remember(step, response);
                }
                self.answers(answers, expect)
            }
        }
    }

    /// The expectation with what was remembered in its place.
    fn recalled(&self, expect: &Expect) -> Expect {
        let mut expect = expect.clone();
        for want in expect.fields.values_mut() {
            if let Want::Exactly(value) = want {
                *value = send::recall(std::mem::take(value), &self.remembered);
            }
        }
        expect
    }

    /// Notes what a later request is to send back.
    fn remember(&mut self, step: &Step, response: &Response) {
        for (name, field) in &step.remember {
            let said = response.fields.first(field).unwrap_or_default();
            let said = said.split(';').next().unwrap_or_default().trim();
            self.remembered.insert(name.clone(), said.to_owned());
        }
    }

    fn pipeline(&mut self, step: &Step) -> Result<Vec<Mismatch>, Error> {
        let addr = self.addr(step)?;
        let context = self.context();
        let requests: Vec<_> =
            step.pipeline.iter().map(|part| send::request_of(part, &context, &self.remembered)).collect();
        let (answers, mut connection) = self.within(send::pipeline(&requests, addr, WAIT_LIMIT))??;
        let mut out = Vec::new();
        for (n, (answer, part)) in answers.iter().zip(&step.pipeline).enumerate() {
            let expect = part.expect.clone().unwrap_or_default();
            for mut mismatch in self.answer(answer, &expect) {
                mismatch.what = format!("request {} of the pipeline: {}", n + 1, mismatch.what);
                out.push(mismatch);
            }
            if expect.closed {
                out.extend(self.closes(&mut connection)?);
            }
        }
        Ok(out)
    }

    fn answers(&mut self, answers: Vec<Answered>, expect: &Expect) -> Result<Vec<Mismatch>, Error> {
        let many = answers.len() > 1;
        for (n, Answered { response, connection }) in answers.into_iter().enumerate() {
            let mut out = self.answer(&response, expect);
            if let Some(mut connection) = connection {
                if expect.closed {
                    out.extend(self.closes(&mut connection)?);
                } else {
                    out.extend(nothing_after(&connection));
                }
            }
            if many {
                out.iter_mut().for_each(|m| m.what = format!("client {}: {}", n + 1, m.what));
            }
            // One client that is wrong is enough to read about.
            if !out.is_empty() {
                return Ok(out);
            }
        }
        Ok(Vec::new())
    }

    fn answer(&mut self, response: &Result<Response, Error>, expect: &Expect) -> Vec<Mismatch> {
        match response {
            Ok(response) => {
                self.last_response = response.to_string();
                if expect.no_response {
                    return vec![Mismatch::new("response", "none", response.status.to_string())];
                }
                let expect = self.recalled(expect);
                expect::response(&expect, response, &self.context())
            }
            Err(Error::Cut(_) | Error::Io(_)) if expect.no_response => Vec::new(),
            Err(error) => vec![Mismatch::new("response", "one", error.to_string())],
        }
    }

    fn closes(&self, connection: &mut Connection) -> Result<Vec<Mismatch>, Error> {
        Ok(match self.within(connection.ends_within(WAIT_LIMIT))? {
            Ok(true) => Vec::new(),
            Ok(false) => vec![Mismatch::new("connection", "closed by larder", "open")],
            Err(error) => vec![Mismatch::new("connection", "closed by larder", error.to_string())],
        })
    }

    /// What a step expects of origins and metrics.
    fn surroundings(&mut self, expect: &Expect) -> Vec<Mismatch> {
        let mut out = Vec::new();
        let mut equal = |what: &str, wanted: Option<u64>, got: u64| {
            if let Some(wanted) = wanted
                && wanted != got
            {
                out.push(Mismatch::new(what, wanted.to_string(), got.to_string()));
            }
        };
        let sum = |of: fn(&Log) -> u64| self.origins.values().map(|origin| of(origin.log())).sum();
        equal("origin_requests", expect.origin_requests, self.origin_requests());
        equal("origin_peak", expect.origin_peak, sum(|log| log.in_flight_peak()));
        equal("origin_connections", expect.origin_connections, sum(|log| log.connections()));
        for (name, &wanted) in &expect.origin_requests_of {
            let got = self.requests_of(name);
            equal(&format!("requests of {name}"), Some(wanted), got);
        }
        if let Some(stated) = expect.origin_requests {
            self.last_stated = stated;
        }
        if let Some(saw) = &expect.origin_saw {
            let name = saw.origin.as_deref().unwrap_or("origin");
            let seen = self.origins.get(name).map(|origin| origin.log().all()).unwrap_or_default();
            out.extend(expect::origin_saw(saw, &seen, &self.context()));
        }
        for (series, wanted) in &expect.metrics {
            let got = self.larder.metric(series);
            if got != Some(*wanted) {
                out.push(Mismatch::new(series, wanted.to_string(), format!("{got:?}")));
            }
        }
        out
    }

    fn requests_of(&self, name: &str) -> u64 {
        self.origins.get(name).map_or(0, |origin| origin.log().count())
    }

    fn wait(&self, wait: &Wait) -> Result<Vec<Mismatch>, Error> {
        for (name, &bytes) in &wait.received {
            let crowd = self.crowds.get(name).ok_or_else(|| unknown("clients", name))?;
            for progress in &crowd.progress {
                self.within(progress.until(bytes))?;
            }
        }
        loop {
            let sum =
                |of: fn(&Log) -> u64| -> u64 { self.origins.values().map(|origin| of(origin.log())).sum() };
            let (in_flight, open) = (sum(|log| log.in_flight()), sum(|log| log.connections_open()));
            let mut missing = Vec::new();
            if let Some(wanted) = wait.origin_requests.filter(|&wanted| self.origin_requests() < wanted) {
                let got = self.origin_requests().to_string();
                missing.push(Mismatch::new("origin_requests", format!("at least {wanted}"), got));
            }
            for (name, &wanted) in &wait.origin_requests_of {
                let got = self.requests_of(name);
                if got < wanted {
                    let what = format!("requests of {name}");
                    missing.push(Mismatch::new(what, format!("at least {wanted}"), got.to_string()));
                }
            }
            let aside = sum(|log| log.count_aside());
            if let Some(wanted) = wait.origin_aside.filter(|&wanted| aside < wanted) {
                missing.push(Mismatch::new("origin_aside", format!("at least {wanted}"), aside.to_string()));
            }
            if let Some(wanted) = wait.origin_in_flight.filter(|&wanted| in_flight != wanted) {
                missing.push(Mismatch::new("origin_in_flight", wanted.to_string(), in_flight.to_string()));
            }
            if let Some(wanted) = wait.origin_connections_open.filter(|&wanted| open != wanted) {
                missing.push(Mismatch::new("origin_connections_open", wanted.to_string(), open.to_string()));
            }
            for (series, wanted) in &wait.gauges {
                let got = self.larder.metric(series);
                if got != Some(*wanted) {
                    missing.push(Mismatch::new(series, wanted.to_string(), format!("{got:?}")));
                }
            }
            for (series, wanted) in &wait.metrics {
                let got = self.larder.metric(series);
                if got.is_none_or(|got| got < *wanted) {
                    missing.push(Mismatch::new(series, format!("at least {wanted}"), format!("{got:?}")));
                }
            }
            if missing.is_empty() || Instant::now() + LOOK_EVERY > self.deadline {
                return Ok(missing);
            }
            self.within(async { tokio::time::sleep(LOOK_EVERY).await })?;
        }
    }
}

/// The step with its number in the place of `{i}`.
fn numbered(step: &Step, number: u64) -> Step {
    let put = |text: &String| text.replace("{i}", &number.to_string());
    let mut step = step.clone();
    for text in [&mut step.get, &mut step.head, &mut step.post, &mut step.request, &mut step.body] {
        *text = text.as_ref().map(put);
    }
    step.fields = step.fields.iter().map(put).collect();
    step
}

fn nothing_after(connection: &Connection) -> Option<Mismatch> {
    let ahead = connection.ahead();
    (!ahead.is_empty())
        .then(|| Mismatch::new("after the response", "nothing", ahead.escape_ascii().to_string()))
}

fn reload(outcome: Result<(), String>, refused: Option<&str>) -> Vec<Mismatch> {
    match (outcome, refused) {
        (Ok(()), None) => Vec::new(),
        (Err(why), Some(part)) if why.contains(part) => Vec::new(),
        (Ok(()), Some(part)) => vec![Mismatch::new("reload", format!("refused: {part}"), "accepted")],
        (Err(why), part) => vec![Mismatch::new("reload", part.unwrap_or("accepted"), why)],
    }
}

fn unknown(what: &str, name: &str) -> Error {
    Error::Scenario(format!("no {what} called {name}"))
}
