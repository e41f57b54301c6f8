from perfcast.api import Champion as Champion
from perfcast.api import UserError as UserError
from perfcast.api import estimator as estimator
from perfcast.api import load_champion as load_champion
from perfcast.api import predict as predict

__version__: str
