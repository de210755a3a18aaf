//! Tags: the names by which an application purges the responses that it has tagged with them.
