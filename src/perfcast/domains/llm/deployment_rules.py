"""Description rules of deployed language models."""

from perfcast.domains.llm.deployment_limits import DeploymentLimits
from perfcast.domains.llm.deployment_names import DeploymentNames
from perfcast.domains.llm.deployment_presentation import DeploymentPresentation
from perfcast.domains.llm.deployment_typical import DeploymentTypicalValues
from perfcast.inference.rules.description_rules import DescriptionRules

LLM_SERVING = DescriptionRules(
    DeploymentNames(), DeploymentTypicalValues(), DeploymentLimits(), DeploymentPresentation()
)
