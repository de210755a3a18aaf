//! The proof that a host is larder's, within an order (RFC 8555 7.5, 8; RFC 8737).
//!
//! In: an order that is pending. Out: the kind of proof that the authority has accepted, or the reason that it gives. The proof is shown
//! before the authority is asked to look, and until it has decided. Deliberately absent: the choice among kinds. One attempt tries one of
//! them, because authorities count failed proofs.

use std::sync::Arc;

use instant_acme::{AuthorizationStatus, ChallengeType, Identifier, Order, Problem};

use crate::challenges::Proof;
use crate::client::LastAnswer;
use crate::error::{Failure, FailureKind};
use crate::event::Step;
use crate::nonces::despite_nonces;
use crate::order::{Attempt, Pauses};
use crate::settings::ChallengeKind;

/// Longest token that is shown. The standard's have 22 characters at least.
const TOKEN_MAX: usize = 512;

impl ChallengeKind {
    fn of_protocol(self) -> ChallengeType {
        match self {
            Self::TlsAlpn01 => ChallengeType::TlsAlpn01,
            Self::Http01 => ChallengeType::Http01,
        }
    }
}

/// What the authority says of a proof.
enum Judgement {
    Undecided,
    Accepted,
    Refused(Option<Problem>),
}

impl Attempt {
    /// Proves the host; `None` where the authority still accepts a proof from before.
    pub(crate) async fn prove(&self, order: &mut Order) -> Result<Option<ChallengeKind>, Failure> {
        let Some(proof) = self.wanted(order).await? else {
            return Ok(None);
        };
        let _pending = self.challenges.show(proof);
        self.step(Step::ProofShown);
        despite_nonces!(self.ask_to_look(order)).map_err(|error| match error {
            instant_acme::Error::Api(problem) if self.is_of_proof(&problem) => {
                Failure::of_proof(self.proof, Some(&problem))
            }
            other => self.failed("proof", &other),
        })?;
        let mut pauses = Pauses::new();
        loop {
            pauses.pause(self.client.last().retry_after).await?;
            let judgement = despite_nonces!(self.judgement(order));
            match judgement.map_err(|error| self.failed("proof", &error))? {
                Judgement::Undecided => {}
                Judgement::Accepted => return Ok(Some(self.proof)),
                Judgement::Refused(problem) => return Err(Failure::of_proof(self.proof, problem.as_ref())),
            }
        }
    }

    /// The proof that the authority wants to see.
    async fn wanted(&self, order: &mut Order) -> Result<Option<Proof>, Failure> {
        let unfit = |text: &str| Failure::new(FailureKind::Answer, text);
        if order.state().authorizations.len() != 1 {
            return Err(unfit("the order for one name has not one authorization"));
        }
        despite_nonces!(fetch(order)).map_err(|error| self.failed("authorization", &error))?;
        let mut authorizations = order.authorizations();
        let Some(Ok(mut authorization)) = authorizations.next().await else {
            return Err(unfit("the order has no authorization"));
        };
        if *authorization.identifier().identifier != Identifier::Dns(self.name.clone()) {
            return Err(unfit("the authorization is for another name"));
        }
        match authorization.status {
            AuthorizationStatus::Valid => return Ok(None),
            AuthorizationStatus::Pending => {}
            _ => return Err(unfit("the authorization has ended before it was used")),
        }
        let Some(challenge) = authorization.challenge(self.proof.of_protocol()) else {
            return Err(Failure::new(
                FailureKind::Proof,
                format!("the authority offers no proof by {}", self.proof),
            ));
        };
        if challenge.token.is_empty() || challenge.token.len() > TOKEN_MAX || !is_base64_url(&challenge.token)
        {
            return Err(unfit("the token is none"));
        }
        let authorized = challenge.key_authorization();
        match self.proof {
            ChallengeKind::Http01 => {
                let content = Arc::from(authorized.as_str());
                Ok(Some(Proof::Http { token: challenge.token.clone(), content }))
            }
            ChallengeKind::TlsAlpn01 => Proof::tls(&self.name, authorized.digest().as_ref())
                .map(Some)
                .map_err(|reason| Failure::new(FailureKind::Internal, reason)),
        }
    }

    async fn ask_to_look(&self, order: &mut Order) -> Result<(), instant_acme::Error> {
        let mut authorizations = order.authorizations();
        let Some(authorization) = authorizations.next().await else { return Ok(()) };
        let mut authorization = authorization?;
        match authorization.challenge(self.proof.of_protocol()) {
            Some(mut challenge) => challenge.set_ready().await,
            None => Ok(()),
        }
    }

    async fn judgement(&self, order: &mut Order) -> Result<Judgement, instant_acme::Error> {
        let mut authorizations = order.authorizations();
        let Some(authorization) = authorizations.next().await else {
            return Ok(Judgement::Refused(None));
        };
        let mut authorization = authorization?;
        let state = authorization.refresh().await?;
        Ok(match state.status {
            AuthorizationStatus::Pending => Judgement::Undecided,
            AuthorizationStatus::Valid => Judgement::Accepted,
            _ => Judgement::Refused(state.challenges.iter().find_map(|challenge| challenge.error.clone())),
        })
    }

    /// The answer to the request to look may have the result already.
    fn is_of_proof(&self, problem: &Problem) -> bool {
        let failure = Failure::of("", &instant_acme::Error::Api(problem.clone()), LastAnswer::default());
        failure.kind == FailureKind::Proof
    }
}

/// Has the order's authorization fetched.
async fn fetch(order: &mut Order) -> Result<(), instant_acme::Error> {
    match order.authorizations().next().await {
        Some(Err(error)) => Err(error),
        _ => Ok(()),
    }
}

fn is_base64_url(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}
