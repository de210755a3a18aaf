//! The plan in force with one worker's connections to its origins.

use std::sync::Arc;

use http::header::STRICT_TRANSPORT_SECURITY;
use larder_http::message::PreparedFields;
use larder_origin::{Origin, SetupError};

use crate::plan::Plan;
use crate::settings::OriginChoice;

/// A plan with this worker's connections.
pub(crate) struct WorkerPlan {
    pub(crate) plan: Arc<Plan>,
    origins: Vec<(OriginChoice, Arc<Origin>)>,
    /// What each site adds to its answers over TLS. This worker's own, as each of them is counted.
    secure_fields: Box<[Option<Arc<PreparedFields>>]>,
}

impl WorkerPlan {
    /// Connections to origins that `before` has as well are kept.
    ///
    /// # Errors
    /// An origin's TLS cannot be set up.
    pub(crate) fn new(plan: Arc<Plan>, before: Option<&Self>) -> Result<Self, SetupError> {
        let origins = plan.origins.iter().map(|choice| {
            let kept = before.and_then(|before| {
                before.origins.iter().find(|(old, _)| Arc::ptr_eq(&old.settings, &choice.settings))
            });
            let origin = match kept {
                Some((_, origin)) => Arc::clone(origin),
                None => Arc::new(Origin::new(Arc::clone(&choice.settings), Arc::clone(&choice.state))?),
            };
            Ok::<_, SetupError>((choice.clone(), origin))
        });
        let secure_fields = plan.router.sites().map(|site| {
            let hsts = site.settings.tls.as_ref()?.hsts.clone()?;
            Some(Arc::new(PreparedFields::new([(STRICT_TRANSPORT_SECURITY, hsts)].into_iter().collect())))
        });
        let secure_fields = secure_fields.collect();
        Ok(Self { origins: origins.collect::<Result<_, _>>()?, secure_fields, plan })
    }

    /// What the site of this number adds to its answers over TLS.
    pub(crate) fn secure_fields(&self, site: usize) -> Option<&Arc<PreparedFields>> {
        self.secure_fields.get(site)?.as_ref()
    }

    /// Whether an origin is known to be out of reach.
    pub(crate) fn is_down(&self, index: usize) -> bool {
        self.origin(index).is_some_and(|(_, origin)| origin.is_down())
    }

    /// Whether an origin has time for a request that nobody waits for: it is there, or may be there again, and no client
    /// queues for it.
    pub(crate) fn has_prospect(&self, index: usize) -> bool {
        let has = |origin: &Origin| !origin.is_queueing() && (!origin.is_down() || origin.is_probe_due());
        self.origin(index).is_none_or(|(_, origin)| has(origin))
    }

    /// Every origin of the plan.
    pub(crate) fn origins(&self) -> &[(OriginChoice, Arc<Origin>)] {
        &self.origins
    }

    pub(crate) fn choice(&self, index: usize) -> Option<&OriginChoice> {
        self.origins.get(index).map(|(choice, _)| choice)
    }

    pub(crate) fn origin(&self, index: usize) -> Option<&(OriginChoice, Arc<Origin>)> {
        self.origins.get(index)
    }
}
