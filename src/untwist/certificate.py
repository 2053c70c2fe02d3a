"""The convergence certificate: Theorem "genBOOST" checked on a finished run, with the run's own constants."""

from untwist.theory.certificate import (
    Certificate,
    StepCondition,
    SurrogateCertificate,
    certify,
    step_condition,
)

__all__ = ["Certificate", "StepCondition", "SurrogateCertificate", "certify", "step_condition"]
