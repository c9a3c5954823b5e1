"""The kernels of manifold-constrained hyper-connections (mHC) for Ascend, with their tests and cases for comparisons.

Hyper-connections (Zhu et al., 2024, arXiv:2409.19606) replace the residual stream of a transformer by ``mhc`` parallel streams which
learned weights mix before, after and beside every layer. mHC (Xie et al., 2025, arXiv:2512.24880) keeps the matrix that mixes the
streams among themselves doubly stochastic, so that depth neither amplifies nor extinguishes signals.
"""
