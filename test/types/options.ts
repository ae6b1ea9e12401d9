import { type DynamicModule } from '@nestjs/common';
import { expectTypeOf } from 'expect-type';
import {
  EchoMq,
  EchoMqModule,
  type EchoMqModuleAsyncOptions,
  type EchoMqModuleOptions,
  type EchoMqOptionsFactory,
} from 'nestjs-echomq';

class Config {
  readonly redisUrl = 'redis://localhost';
}
class Factory implements EchoMqOptionsFactory {
  createEchoMqOptions(): EchoMqModuleOptions {
    return { connection: 'redis://localhost' };
  }
}

expectTypeOf(EchoMqModule.forRoot({ connection: 'redis://localhost' })).toExtend<DynamicModule>();
EchoMqModule.forRoot({ connection: { host: 'localhost' }, queues: { mail: { concurrency: 2 } }, consume: false });
// @ts-expect-error a server is asked for
EchoMqModule.forRoot();
// @ts-expect-error by its connection
EchoMqModule.forRoot({});
// @ts-expect-error which is no number
EchoMqModule.forRoot({ connection: 6379 });
// @ts-expect-error there is no such option
EchoMqModule.forRoot({ connection: 'redis://localhost', redis: {} });
// @ts-expect-error nor such an option of a queue
EchoMqModule.forRoot({ connection: 'redis://localhost', queues: { mail: { concurency: 2 } } });

EchoMqModule.forRootAsync({ inject: [Config], useFactory: ({ redisUrl }: Config) => ({ connection: redisUrl }) });
EchoMqModule.forRootAsync({ useFactory: async () => ({ connection: 'redis://localhost' }) });
EchoMqModule.forRootAsync({ useClass: Factory });
EchoMqModule.forRootAsync({ useExisting: Factory });
EchoMqModule.forRootAsync({
  name: 'audit',
  useFactory: async () => ({ connection: { host: 'localhost', port: 1 }, onBoot: 'wait', wire: 4 }),
});
EchoMqModule.forRootAsync({
  name: 'audit',
  useFactory: (): EchoMqModuleOptions => ({ connection: 'redis://localhost' }),
});
const passedOn = (options: EchoMqModuleAsyncOptions) => EchoMqModule.forRootAsync(options);
passedOn({ useFactory: ({ redisUrl }: Config) => ({ connection: redisUrl }) });
// @ts-expect-error the name stands beside the factory
EchoMqModule.forRootAsync({ useFactory: () => ({ connection: 'redis://localhost', name: 'audit' }) });
// @ts-expect-error also of one that answers later
EchoMqModule.forRootAsync({ useFactory: async () => ({ connection: 'redis://localhost', name: 'audit' }) });
// @ts-expect-error there is no such option beside a factory
EchoMqModule.forRootAsync({ useFactory: () => ({ connection: 'redis://localhost' }), isGlobal: true });
// @ts-expect-error a factory answers options
EchoMqModule.forRootAsync({ useFactory: () => ({}) });
// @ts-expect-error with all that they need
EchoMqModule.forRootAsync({ useFactory: async () => ({ consume: false }) });
// @ts-expect-error that class makes no options
EchoMqModule.forRootAsync({ useClass: Config });
// @ts-expect-error it needs something to compute them
EchoMqModule.forRootAsync();

expectTypeOf(EchoMq.connect({ connection: 'redis://localhost' })).resolves.toEqualTypeOf<EchoMq>();
// @ts-expect-error a server is asked for here too
EchoMq.connect({});
