import { Inject } from '@nestjs/common';
import {
  getBusToken,
  getConsumersToken,
  getEchoMqToken,
  getFlowsToken,
  getJobsToken,
  getLanesToken,
  getSchedulesToken,
} from './tokens.js';

type InjectDecorator = PropertyDecorator & ParameterDecorator;

/** Injects the `Jobs` of `EchoMqModule.forRoot({ name })`. Without a name, as the class `Jobs` does. */
export function InjectJobs(name?: string): InjectDecorator {
  return Inject(getJobsToken(name));
}

/** Injects the `Flows` of `EchoMqModule.forRoot({ name })`. Without a name, as the class `Flows` does. */
export function InjectFlows(name?: string): InjectDecorator {
  return Inject(getFlowsToken(name));
}

/** Injects the `Schedules` of `EchoMqModule.forRoot({ name })`. Without a name, as the class `Schedules` does. */
export function InjectSchedules(name?: string): InjectDecorator {
  return Inject(getSchedulesToken(name));
}

/** Injects the `Lanes` of `EchoMqModule.forRoot({ name })`. Without a name, as the class `Lanes` does. */
export function InjectLanes(name?: string): InjectDecorator {
  return Inject(getLanesToken(name));
}

/** Injects the `Bus` of `EchoMqModule.forRoot({ name })`. Without a name, as the class `Bus` does. */
export function InjectBus(name?: string): InjectDecorator {
  return Inject(getBusToken(name));
}

/** Injects the `EchoMq` of `EchoMqModule.forRoot({ name })`. */
export function InjectEchoMq(name?: string): InjectDecorator {
  return Inject(getEchoMqToken(name));
}

/** Injects the `Consumers` of `EchoMqModule.forRoot({ name })`. */
export function InjectConsumers(name?: string): InjectDecorator {
  return Inject(getConsumersToken(name));
}
