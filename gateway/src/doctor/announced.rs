//! Whether glasses find the gateway on the network without its address.

use super::Use;
use crate::{
    discovery::state::Announced,
    findings::{Findings, Level},
    text::in_one_line,
};

pub(super) fn examine(used_by: &Use, findings: &mut Findings) {
    if let Use::Gateway(status) = used_by
        && let Some(announced) = &status.announced
    {
        judge(announced, findings);
    }
}

fn judge(announced: &Announced, findings: &mut Findings) {
    match announced {
        Announced::As(name) => findings.ok("discovery", format!("announced on the network as {}", in_one_line(name))),
        Announced::Soon => findings.ok("discovery", "the gateway has just started, and is announced soon"),
        Announced::Not(why) => findings.add(
            Level::Warning,
            "discovery",
            format!("the gateway is not announced on the network, so glasses need its address: {why}"),
            "see that an interface is up (`ip address`) and UDP port 5353 is free for multicast DNS (`ss -ulpn`, the firewall, \
             the unit); or set `enabled = false` in the section [discovery], and invite glasses (`lorgnette devices invite`)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_that_is_not_announced_is_told_with_a_remedy() {
        let judged = |announced| {
            let mut findings = Findings::default();
            judge(&announced, &mut findings);
            findings.0.remove(0)
        };
        let found = judged(Announced::Not("no interface".to_owned()));
        assert!(found.level == Level::Warning && found.what.ends_with("no interface"), "{found:?}");
        assert!(["UDP port 5353", "[discovery]"].iter().all(|part| found.remedy.as_ref().unwrap().contains(part)));
        let found = judged(Announced::As("Hearth".to_owned()));
        assert!(found.level == Level::Ok && found.what.ends_with("as Hearth"), "{found:?}");
    }
}
