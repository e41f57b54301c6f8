"""Executor of Snakemake that runs nothing: it counts the entries of a queue, and makes empty outputs."""

from pathlib import Path

from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import GroupJobExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
    init_seconds_before_status_checks=0,
)


class Executor(RemoteExecutor):
    def run_job(self, job):
        jobs = list(job.jobs) if isinstance(job, GroupJobExecutorInterface) else [job]
        with Path("queue.txt").open("a") as queue:
            print(*sorted(each.rule.name for each in jobs), file=queue)
        for each in jobs:
            for output in [*each.output, *([each.benchmark] if each.benchmark else [])]:
                path = Path(output)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.mkdir() if output.is_directory else path.touch()
        self.report_job_submission(SubmittedJobInfo(job))

    async def check_active_jobs(self, active_jobs):
        for job in active_jobs:
            self.report_job_success(job)
        return
        yield

    def cancel_jobs(self, active_jobs):
        """Cancel nothing: a counted job has ended."""
