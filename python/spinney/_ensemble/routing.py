"""What callers pass to `predict` beside the rows, for members that ask for it: scikit-learn's metadata routing."""

from __future__ import annotations

from typing import Any

from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from spinney._estimator.estimator import Estimator


class RoutesToMembers(Estimator):
    """Mixin for ensembles of any estimators."""

    def _unfitted_member(self) -> Any:
        """Return the estimator that members are copies of."""
        raise NotImplementedError

    def _asked_of_members(self) -> dict[str, str]:
        """Return which method of the members each method of the ensemble asks."""
        return {"predict": "predict"}

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what scikit-learn's metadata routing wants to know: what is handed on to which method of the members.

        Returns
        -------
        MetadataRouter
            The routing.
        """
        mapping = MethodMapping()
        for caller, callee in self._asked_of_members().items():
            mapping.add(caller=caller, callee=callee)
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self._unfitted_member(), method_mapping=mapping)

    def _routed(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return what members are to be given beside their rows."""
        if not params:
            return {}
        if not get_config()["enable_metadata_routing"]:
            raise ValueError(
                f"{method} hands {', '.join(params)} on to members only where metadata routing is on: "
                "sklearn.set_config(enable_metadata_routing=True), and members that request it."
            )
        routed = process_routing(self, method, **params)
        return dict(routed["estimator"][self._asked_of_members()[method]])
