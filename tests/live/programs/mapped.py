# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects mapped by SQLAlchemy, in a waiting session: loaded attributes, and others not loaded."""
import sys
from typing import List

from sqlalchemy import ForeignKey, create_engine, make_url
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    orders: Mapped[List["Order"]] = relationship(back_populates="user")


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    total: Mapped[float]
    user: Mapped[User] = relationship(back_populates="orders")


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
session = Session(engine)
session.add(User(name="bob", orders=[Order(total=9.5), Order(total=1.25)]))
session.commit()  # from now on nothing is loaded
order = session.get(Order, 2)
user = User(name="ann", orders=[Order(total=2.0)])
url = make_url("postgresql://joe:hunter2@db/orders")
print("ready", flush=True)
sys.stdin.read()
