"""The older names of the API: ``TornasoleHook`` is a framework's hook with its own order of arguments and defaults."""

from __future__ import annotations

from tornasole.core.save_config import SaveConfig

_OLDER_INTERVAL = 100
_OLDER_COLLECTIONS = ("weights", "gradients", "biases", "default")


def make_tornasole_hook(hook_class):
    """The class ``TornasoleHook`` of a framework whose hook is ``hook_class``."""

    class TornasoleHook(hook_class):
        """The hook under its older name, with the older order of arguments.

        Without ``save_config`` every 100th step is saved; without ``include_collections`` weights, gradients, biases
        and ``default`` are. ``worker`` replaces the computed name of the worker.
        """

        def __init__(
            self,
            out_dir=None,
            dry_run=False,
            worker=None,
            reduction_config=None,
            save_config=None,
            include_regex=None,
            include_collections=None,
            save_all=False,
            **options,
        ) -> None:
            if "_config_file" not in options:
                if save_config is None:
                    save_config = SaveConfig(save_interval=_OLDER_INTERVAL)
                if include_collections is None:
                    include_collections = list(_OLDER_COLLECTIONS)
            super().__init__(
                out_dir=out_dir,
                dry_run=dry_run,
                reduction_config=reduction_config,
                save_config=save_config,
                include_regex=include_regex,
                include_collections=include_collections,
                save_all=save_all,
                worker=worker,
                **options,
            )

    TornasoleHook.__module__ = hook_class.__module__
    TornasoleHook.__qualname__ = "TornasoleHook"
    return TornasoleHook
